"""manifests.py FOLDER: deploy/kubernetes as Kubernetes would have to find it, as far as files alone can tell: every field is
one that there is, and what has to be equal is. Prints what is not so; status 1 then."""
import re
import sys
from pathlib import Path

import yaml

ANY = object()  # a scalar, or words of the user's own

METADATA = {"name": ANY, "labels": ANY, "annotations": ANY, "namespace": ANY}
KEY_SELECTOR = {"matchLabels": ANY}
CONTAINER = {
    "name": ANY, "image": ANY, "command": [ANY], "args": [ANY],
    "env": [{"name": ANY, "value": ANY, "valueFrom": {"fieldRef": {"fieldPath": ANY}}}],
    "resources": {"requests": ANY, "limits": ANY},
    "volumeMounts": [{"name": ANY, "mountPath": ANY, "readOnly": ANY}],
}
POD = {
    "restartPolicy": ANY, "subdomain": ANY, "hostNetwork": ANY, "dnsPolicy": ANY,
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": ANY, "labelSelector": KEY_SELECTOR}]}},
    "containers": [CONTAINER],
    "volumes": [{"name": ANY, "secret": {"secretName": ANY, "defaultMode": ANY}}],
}
FIELDS = {
    "Service": {"apiVersion": ANY, "kind": ANY, "metadata": METADATA, "spec": {
        "clusterIP": ANY, "publishNotReadyAddresses": ANY, "selector": ANY, "ports": [{"name": ANY, "port": ANY}]}},
    "Job": {"apiVersion": ANY, "kind": ANY, "metadata": METADATA, "spec": {
        "completionMode": ANY, "completions": ANY, "parallelism": ANY, "backoffLimit": ANY, "activeDeadlineSeconds": ANY,
        "ttlSecondsAfterFinished": ANY, "template": {"metadata": METADATA, "spec": POD}}},
    "Kustomization": {"apiVersion": ANY, "kind": ANY, "resources": [ANY], "patches": [
        {"target": {"group": ANY, "version": ANY, "kind": ANY, "name": ANY}, "patch": ANY}]},
}
VERSIONS = {"Service": "v1", "Job": "batch/v1", "Kustomization": "kustomize.config.k8s.io/v1beta1"}
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

faults = []


def check(what, fine):
    if not fine:
        faults.append(what)


def check_fields(where, value, known):
    if isinstance(known, list):
        check(f"{where} is no list", isinstance(value, list))
        for i, one in enumerate(value if isinstance(value, list) else []):
            check_fields(f"{where}[{i}]", one, known[0])
    elif isinstance(known, dict):
        check(f"{where} has no fields", isinstance(value, dict))
        for name, inside in (value if isinstance(value, dict) else {}).items():
            check(f"{where}.{name} is no field", name in known)
            check_fields(f"{where}.{name}", inside, known.get(name, ANY))


def read(path):
    objects = {}
    for one in yaml.safe_load_all(path.read_text()):
        kind = one.get("kind")
        if kind not in FIELDS:
            sys.exit(f"{path}: kind {kind}")
        check_fields(f"{path}: {kind}", one, FIELDS[kind])
        check(f"{path}: apiVersion of {kind}", one.get("apiVersion") == VERSIONS[kind])
        objects[kind] = one
    return objects


def check_job(service, job):
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    (container,) = pod["containers"]
    options = dict(re.fullmatch(r"--([-a-z]+)=(.*)", word).groups() for word in container["args"])
    env = {one["name"]: one for one in container["env"]}
    names = (service["metadata"]["name"], job["metadata"]["name"])
    check("names", all(NAME.fullmatch(name) for name in names) and len(f"{names[1]}-{spec['completions'] - 1}") < 64)
    check("indexed, all at once, tried once", spec["completionMode"] == "Indexed" and spec["backoffLimit"] == 0 and
          spec["completions"] == spec["parallelism"] == int(options["nodes"]))
    check("restartPolicy", pod["restartPolicy"] in ("Never", "OnFailure"))
    check("bounded in time", spec["activeDeadlineSeconds"] > int(options["connect-timeout"]) > 0)
    check("the service has no address, and names pods early", service["spec"]["clusterIP"] == "None" and
          service["spec"]["publishNotReadyAddresses"] is True)
    check("the service finds the pods", service["spec"]["selector"].items() <= labels.items())
    check("the pods are the service's", pod["subdomain"] == names[0])
    check("the rendezvous is rank 0", options["rendezvous"] ==
          f"{names[1]}-0.{names[0]}:{service['spec']['ports'][0]['port']}")
    check("the rank is the index", options["rank"] == "$(RANK)" and env["RANK"]["valueFrom"]["fieldRef"]["fieldPath"] ==
          "metadata.annotations['batch.kubernetes.io/job-completion-index']")
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    check("one on each node", apart["topologyKey"] == "kubernetes.io/hostname" and
          apart["labelSelector"]["matchLabels"].items() <= labels.items())
    (mount,), (volume,) = container["volumeMounts"], pod["volumes"]
    check("the key is mounted", mount["name"] == volume["name"] and
          env["WEFT_KEY_FILE"]["value"].startswith(mount["mountPath"] + "/"))
    check("the key is its owner's alone", volume["secret"]["defaultMode"] == 0o400)


def patched(folder, objects):
    """The objects with JSON patches that add."""
    for one in read(folder / "kustomization.yaml")["Kustomization"]["patches"]:
        target = one["target"]
        found = objects.get(target["kind"])
        version = "/".join(filter(None, (target.get("group"), target.get("version"))))
        if not found or found["metadata"]["name"] != target["name"] or found["apiVersion"] != version:
            sys.exit(f"{folder}: no target")
        for step in yaml.safe_load(one["patch"]):
            *path, last = step["path"].strip("/").split("/")
            for name in path:
                found = found[name]
            check(f"{folder}: {step}", step["op"] == "add" and last not in found)
            found[last] = step["value"]
            found = objects[target["kind"]]
    return objects


root = Path(sys.argv[1])
for folder in ("job", "host-network"):
    for resource in read(root / folder / "kustomization.yaml")["Kustomization"]["resources"]:
        check(f"{folder} has no {resource}", (root / folder / resource).exists())
objects = read(root / "job" / "job.yaml")
check_job(objects["Service"], objects["Job"])
objects = patched(root / "host-network", objects)
check_fields("host-network", objects["Job"], FIELDS["Job"])
check_job(objects["Service"], objects["Job"])
pod = objects["Job"]["spec"]["template"]["spec"]
check("names on the hosts' network", pod["hostNetwork"] is True and pod["dnsPolicy"] == "ClusterFirstWithHostNet")
for fault in faults:
    print(f"not so: {fault}")
sys.exit(bool(faults))
