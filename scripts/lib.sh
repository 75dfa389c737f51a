# shellcheck shell=bash
# lib.sh: what the scripts that measure have in common; they source it. A script has a function `usage`.

# Numbers have a decimal point in every language: with a comma, awk and sort would read 0.853 as 0. Letters stay the user's.
if [[ ${LC_ALL-} ]]; then
    export LANG=$LC_ALL LC_CTYPE=$LC_ALL
    unset LC_ALL
fi
export LC_NUMERIC=C

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
wrong_usage() {
    say "$*"
    exit 2
}
unavailable() {
    say "not available here: $*"
    exit 77
}

# read_options ARG...: sets `quick`, `rounds` and the array `words`: all that is no option. An option that is not known
# here is read by own_option OPTION VALUE; it fails where it does not know it, either.
# shellcheck disable=SC2034  # used by the scripts
read_options() {
    quick=0 rounds=3 words=()
    while (($#)); do
        case $1 in
        --quick) quick=1 rounds=1 ;;
        --rounds)
            [[ ${2-} =~ ^[1-9][0-9]{0,2}$ ]] || wrong_usage "--rounds ${2-}: a number from 1 to 999 is wanted"
            rounds=$2
            shift
            ;;
        --help) usage && exit 0 ;;
        -*)
            own_option "$1" "${2-}" || wrong_usage "unknown option '$1': see --help"
            shift
            ;;
        *) words+=("$1") ;;
        esac
        shift
    done
}
own_option() { false; }

# make_scratch NAME: sets `scratch`, a folder that goes with the script.
make_scratch() {
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/weft-$1.XXXXXX") || exit 1
    trap 'rm -rf -- "$scratch"' EXIT
    trap 'exit 130' INT TERM HUP
}

# median: of the numbers on standard input; 0 of none.
median() {
    sort -g | awk '{ v[NR] = $1 } END { printf("%.12g\n", NR ? (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 : 0) }'
}
