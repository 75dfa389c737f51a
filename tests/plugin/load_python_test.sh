#!/usr/bin/env bash
# load_python_test.sh BUILD: the plugin in a python3 that has another OpenSSL: neither disturbs the other, whichever
# comes first.
set -u
# shellcheck source=tests/plugin/load_file.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/load_file.sh"

need_program python3
python3 -c 'import ssl, ctypes' 2>/dev/null || skip 'python3 has no ssl or no ctypes here'
make_key "$scratch/key"
for order in ssl_first plugin_first; do
    run env "${settings[@]}" WEFT_KEY_FILE="$scratch/key" timeout -k 5 60 \
        python3 "$root/tests/plugin/load_python.py" "$plugin" "$order"
    expect_status 0 "$order"
    printf '%s: %s\n' "$order" "$output"
done

finish
