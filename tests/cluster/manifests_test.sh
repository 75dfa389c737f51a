#!/usr/bin/env bash
# The manifests of deploy/kubernetes, offline: manifests.py finds nothing in them, and finds mistakes that are made on
# purpose; kubectl, where it is here, makes the variant of them.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/cluster/cluster_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/cluster_lib.sh"

manifests() { run python3 "$here/manifests.py" "$1"; }
# not_so WHAT FILE SED: a mistake in a manifest is found.
not_so() {
    rm -rf -- "$scratch/kubernetes"
    cp -R -- "$root/deploy/kubernetes" "$scratch/"
    sed -i "$3" "$scratch/kubernetes/$2"
    manifests "$scratch/kubernetes"
    expect_status 1 "$1"
    expect_no_text Traceback "$1"
}
command -v python3 >/dev/null || { echo 'skipped: needs the program python3' && exit 77; }
python3 -c 'import yaml' 2>/dev/null || { echo 'skipped: needs the library PyYAML' && exit 77; }
manifests "$root/deploy/kubernetes"
expect_status 0 'the manifests'
expect_lines 0 'the manifests'
not_so 'another number' job/job.yaml 's/completions: 4/completions: 5/'
not_so 'a field that there is not' job/job.yaml 's/backoffLimit/backOffLimit/; s/activeDeadlineSeconds: 1800/&\n  backoffLimit: 0/'
not_so 'another rendezvous' job/job.yaml 's/weft-mesh-0[.]weft-mesh/weft-mesh-0/'
not_so 'a key for all' job/job.yaml 's/0400/0444/'
not_so 'pods that the service does not find' job/job.yaml '0,/app: weft-mesh/s//app: weft/'
not_so 'a patch of something else' host-network/kustomization.yaml 's/kind: Job/kind: Pod/'
not_so 'resources elsewhere' host-network/kustomization.yaml 's,[.][.]/job,../jobs,'

# What kubectl makes of the variant has all of the Job, and is what the patch says.
if command -v kubectl >/dev/null && kubectl kustomize --help >/dev/null 2>&1; then
    run kubectl kustomize "$root/deploy/kubernetes/host-network"
    expect_status 0 'kubectl kustomize'
    for line in 'kind: Service' 'kind: Job' 'hostNetwork: true' 'dnsPolicy: ClusterFirstWithHostNet' 'completions: 4'; do
        expect_text "$line" 'kubectl kustomize'
    done
fi

finish
