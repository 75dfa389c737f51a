#!/usr/bin/env python3
"""Writes an hwloc topology (XML, version 2) from a short description of a machine.

usage: make_topology.py MACHINE.txt [...]      writes MACHINE.xml beside each description
       make_topology.py --print MACHINE.txt    writes it to standard output

A description is lines of "NAME NUMBER" for packages, nodes_per_package, cores_per_node, threads_per_core and
node_memory_gib, then the devices as a tree by indentation of two blanks:

    root NODE DOMAIN:BUS     a host bridge of a NUMA node, and the number of its bus
    port                     a root port
    switch                   a switch; each device below it gets a port of its own
    gpu id=VENDOR:DEVICE [model=NAME]
    nic NAME id=VENDOR:DEVICE [speed=MBIT] [driver=NAME]

Buses are numbered upwards from that of the root. '_' in a model stands for a blank. Processors are numbered as the
kernel does it: the first threads of all cores, then the second threads.
"""
import sys
from pathlib import Path
from xml.sax.saxutils import quoteattr

NUMBERS = ("packages", "nodes_per_package", "cores_per_node", "threads_per_core", "node_memory_gib")
CLASSES = {"gpu": "0302", "nic": "0200", "bridge": "0604"}
OSDEV_NETWORK = 2
DEVICES_OF_A_BUS = 32


class BadDescription(Exception):
    pass


def read_description(path):
    """The numbers, and the host bridges as nested [words, children]."""
    numbers, roots, open_items = {}, [], []
    for line_number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        where = f"{path.name}:{line_number}"
        if words[0] in NUMBERS:
            if len(words) != 2 or not words[1].isdigit() or int(words[1]) < 1:
                raise BadDescription(f"{where}: '{words[0]}' needs a number from 1 on")
            numbers[words[0]] = int(words[1])
            continue
        depth = (len(line) - len(line.lstrip(" "))) // 2
        if words[0] not in ("root", "port", "switch", "gpu", "nic"):
            raise BadDescription(f"{where}: unknown word '{words[0]}'")
        if depth > len(open_items) or (depth == 0) != (words[0] == "root"):
            raise BadDescription(f"{where}: '{words[0]}' does not belong at this depth")
        item = [words, []]
        (open_items[depth - 1][1] if depth else roots).append(item)
        open_items[depth:] = [item]
    for name in NUMBERS:
        if name not in numbers:
            raise BadDescription(f"{path.name}: no line '{name} NUMBER'")
    return numbers, roots


def bits(numbers):
    """A set as hwloc writes it: words of 32 bits, the highest first."""
    value = sum(1 << number for number in numbers)
    words = []
    while value or not words:
        words.insert(0, f"0x{value & 0xFFFFFFFF:08x}")
        value >>= 32
    return ",".join(words)


class Writer:
    def __init__(self):
        self.lines, self.depth, self.objects = [], 1, 0

    def line(self, text):
        self.lines.append("  " * self.depth + text)

    def info(self, name, value):
        self.line(f"<info name={quoteattr(name)} value={quoteattr(value)}/>")

    def open(self, kind, **attributes):
        self.objects += 1
        text = "".join(f" {name}={quoteattr(str(value))}" for name, value in attributes.items())
        self.line(f'<object type="{kind}"{text} gp_index="{self.objects}">')
        self.depth += 1

    def close(self):
        self.depth -= 1
        self.line("</object>")


class Buses:
    """Of one domain, numbered upwards."""

    def __init__(self, domain, bus):
        self.domain, self.bus, self.last = domain, bus, bus

    def next(self):
        self.last += 1
        if self.last > 0xFF:
            raise BadDescription(f"domain {self.domain:04x}: no bus number left")
        return self.last

    def address(self, bus, device):
        if device >= DEVICES_OF_A_BUS:
            raise BadDescription(f"bus {self.domain:04x}:{bus:02x}: more than {DEVICES_OF_A_BUS} devices")
        return f"{self.domain:04x}:{bus:02x}:{device:02x}.0"


def options(words):
    return dict(word.split("=", 1) for word in words if "=" in word)


def write_device(out, buses, words, bus, slot):
    given = options(words)
    vendor_device = given.get("id", "")
    if len(vendor_device) != 9 or vendor_device[4] != ":":
        raise BadDescription(f"{' '.join(words)}: needs id=VENDOR:DEVICE")
    out.open("PCIDev", pci_busid=buses.address(bus, slot),
             pci_type=f"{CLASSES[words[0]]} [{vendor_device}] [{vendor_device}] 00", pci_link_speed="0.000000")
    if "model" in given:
        out.info("PCIDevice", given["model"].replace("_", " "))
    if words[0] == "nic":
        out.open("OSDev", name=words[1], osdev_type=OSDEV_NETWORK)
        for key, name in (("speed", "Speed"), ("driver", "Driver")):
            if key in given:
                out.info(name, given[key])
        out.close()
    out.close()


def write_bridge(out, buses, bus, slot, depth, fill):
    """A bridge within PCI. What is below it decides how many buses it has, so its line is written last."""
    at, first = len(out.lines), buses.next()
    out.open("Bridge")
    fill(first)
    out.lines[at] = out.lines[at].replace(
        "<object type=\"Bridge\"",
        f'<object type="Bridge" bridge_type="1-1" depth="{depth}" '
        f'bridge_pci="{buses.domain:04x}:[{first:02x}-{buses.last:02x}]" pci_busid="{buses.address(bus, slot)}" '
        f'pci_type="{CLASSES["bridge"]} [8086:352a] [8086:352a] 00" pci_link_speed="0.000000"')
    out.close()


def write_item(out, buses, item, bus, slot, depth):
    words, children = item

    def below(next_bus):
        for index, child in enumerate(children):
            write_item(out, buses, child, next_bus, index, depth + 1)

    def ports(next_bus):
        for index, child in enumerate(children):
            write_bridge(out, buses, next_bus, index, depth + 1,
                         lambda port_bus, child=child: write_item(out, buses, child, port_bus, 0, depth + 2))

    if words[0] in ("port", "switch"):
        write_bridge(out, buses, bus, slot, depth, below if words[0] == "port" else ports)
    else:
        write_device(out, buses, words, bus, slot)


def write_root(out, root):
    domain, bus = (int(part, 16) for part in root[0][2].split(":"))
    buses, at = Buses(domain, bus), len(out.lines)
    out.open("Bridge")
    for slot, child in enumerate(root[1]):
        write_item(out, buses, child, bus, slot, 1)
    out.lines[at] = out.lines[at].replace(
        "<object type=\"Bridge\"",
        f'<object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="{domain:04x}:[{bus:02x}-{buses.last:02x}]"')
    out.close()


def sets(cpus, nodes):
    names = ("cpuset", "complete_cpuset", "nodeset", "complete_nodeset")
    return dict(zip(names, (bits(cpus), bits(cpus), bits(nodes), bits(nodes))))


def write_cores(out, numbers, node, all_cores):
    first = node * numbers["cores_per_node"]
    for core in range(first, first + numbers["cores_per_node"]):
        threads = [core + thread * all_cores for thread in range(numbers["threads_per_core"])]
        out.open("Core", os_index=core, **sets(threads, [node]))
        for thread in threads:
            out.open("PU", os_index=thread, **sets([thread], [node]))
            out.close()
        out.close()


def cpus_of(numbers, nodes, all_cores):
    per_node = numbers["cores_per_node"]
    return [node * per_node + core + thread * all_cores for node in nodes for core in range(per_node)
            for thread in range(numbers["threads_per_core"])]


def write_node(out, numbers, node, roots, all_cores):
    """The node's processors; its memory and devices hang at the object around them."""
    out.open("NUMANode", os_index=node, **sets(cpus_of(numbers, [node], all_cores), [node]),
             local_memory=numbers["node_memory_gib"] << 30)
    out.close()
    write_cores(out, numbers, node, all_cores)
    for root in roots:
        if root[0][1] == str(node):
            write_root(out, root)


def write_package(out, numbers, package, roots, all_cores):
    per_package = numbers["nodes_per_package"]
    nodes = range(package * per_package, (package + 1) * per_package)
    out.open("Package", os_index=package, **sets(cpus_of(numbers, nodes, all_cores), nodes))
    for node in nodes:
        if per_package > 1:
            out.open("Group", **sets(cpus_of(numbers, [node], all_cores), [node]), kind=1000, subkind=0)
        write_node(out, numbers, node, roots, all_cores)
        if per_package > 1:
            out.close()
    out.close()


def topology(path):
    numbers, roots = read_description(path)
    nodes = range(numbers["packages"] * numbers["nodes_per_package"])
    all_cores = len(nodes) * numbers["cores_per_node"]
    for root in roots:
        if len(root[0]) != 3 or root[0][1] not in map(str, nodes):
            raise BadDescription(f"{' '.join(root[0])}: expected 'root NODE DOMAIN:BUS' with a node below {len(nodes)}")
    cpus = cpus_of(numbers, nodes, all_cores)
    out = Writer()
    machine_sets = sets(cpus, nodes)
    out.open("Machine", os_index=0, **machine_sets, allowed_cpuset=machine_sets["cpuset"],
             allowed_nodeset=machine_sets["nodeset"])
    for package in range(numbers["packages"]):
        write_package(out, numbers, package, roots, all_cores)
    out.close()
    head = ['<?xml version="1.0" encoding="UTF-8"?>', '<!DOCTYPE topology SYSTEM "hwloc2.dtd">',
            '<topology version="2.0">']  # no comment: hwloc without its plug-in for libxml2 reads none
    return "\n".join(head + out.lines + ["</topology>"]) + "\n"


def main(arguments):
    printing = arguments[:1] == ["--print"]
    paths = [Path(argument) for argument in arguments[printing:]]
    if not paths or any(argument.startswith("-") for argument in arguments[printing:]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for path in paths:
            text = topology(path)
            if printing:
                sys.stdout.write(text)
            else:
                path.with_suffix(".xml").write_text(text)
    except (BadDescription, OSError, ValueError, IndexError) as problem:
        print(f"make_topology.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
