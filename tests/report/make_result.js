// make_result.js [NAME=VALUE...]: writes a result of weft mesh that nobody measured, for tests of what is made of results.
//
//   sources=4 targets=4   endpoints of node0 and node1; the pairs are node0's to node1's, and with ways=2 also back
//   sizes=5 first=65536   sizes, each four times (factor=) the one before
//   modes=2               1: isolated alone
//   noise=0.03 seed=1     of each pair and size: the standard deviation of its logarithm
//   slow=0:1:2:0.8        way 0 (1: back), source 1 to target 2 has 0.8 of the rate; also 'slow=0:1:*:0.7'; may be repeated
//   nodes=4               more than two: `sources` endpoints each, and pairs between all of them
//   at=1:*:0:0.85         from node1 to every node, rail 0 has 0.85 of its rate; may be repeated
//   jitter=0.02           of what a rail carries beside the others: the standard deviation of its logarithm
//   few=2:1               node 2 has 1 rail
//   again=2:50            in what node 2 sends or receives, 50 segments were sent again each time
//   rails=4 rail=2:0.4    so many rails, of which rail 2 carries 0.4 of what the others do
//   hot=node0:3:91        GPU 3 of node0 at 91 degrees
//   gpus=0                endpoints are GPUs
//   host=NAME             the name of both nodes
//   chunk=524288          a setting, for files of a sweep
//   peak=5                GB/s of large messages
'use strict';
const fs = require('fs');

const want = { sources: 4, targets: 4, sizes: 5, first: 65536, factor: 4, modes: 2, ways: 2, noise: 0.03, seed: 1, rails: 2,
    gpus: 0, host: 'test', chunk: 524288, peak: 5, nodes: 2, jitter: 0, few: '', again: '' };
const slow = [], slowRails = new Map(), hot = [], at = [];
for (const word of process.argv.slice(2)) {
    const sign = word.indexOf('='), name = word.slice(0, sign), value = word.slice(sign + 1);
    if (name === 'slow')
        slow.push(value.split(':'));
    else if (name === 'rail')
        slowRails.set(Number(value.split(':')[0]), Number(value.split(':')[1]));
    else if (name === 'hot')
        hot.push(value.split(':'));
    else if (name === 'at')
        at.push(value.split(':'));
    else if (name in want)
        want[name] = typeof want[name] === 'number' ? Number(value) : value;
    else
        throw new Error('unknown: ' + word);
}

// A small generator of random numbers, so that a seed names a file.
let state = BigInt.asUintN(64, BigInt(want.seed) * 0x9e3779b97f4a7c15n + 1n);
function uniform() {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    let z = state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return (Number((z ^ (z >> 31n)) >> 11n) + 0.5) / 2 ** 53;
}
const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
const digits = value => Number(value.toPrecision(6));

const kind = want.gpus ? 'gpu' : 'host';
const all = want.modes === 1 ? ['isolated'] : ['isolated', 'loaded'];
const railNames = Array.from({ length: want.rails }, (_, i) => 'eth' + i);
const weights = railNames.map((_, i) => slowRails.has(i) ? slowRails.get(i) : 1);
const factorOf = (way, src, dst) => slow.filter(([w, s, d]) => Number(w) === way && (s === '*' || Number(s) === src) &&
    (d === '*' || Number(d) === dst)).reduce((product, entry) => product * Number(entry[3]), 1);

const is = (word, number) => word === '*' || Number(word) === number;
const [fewNode, fewRails] = want.few.split(':'), [againNode, again] = want.again.split(':');
const railsOf = node => railNames.filter((_, i) => !fewNode || Number(fewNode) !== node || i < Number(fewRails));
// What each rail from a node to another has, beside one that is as it should be.
const partsOf = (from, to) => railsOf(to).slice(0, railsOf(from).length).map((_, i) => weights[i] *
    at.filter(entry => is(entry[0], from) && is(entry[1], to) && is(entry[2], i))
        .reduce((product, entry) => product * Number(entry[3]), 1));

function sample(from, to, src, dst, size, mode, share) {
    const parts = partsOf(from, to), way = want.nodes > 2 ? -1 : from, whole = parts.reduce((sum, part) => sum + part, 0);
    const carried = parts.map(part => part * (want.jitter ? Math.exp(want.jitter * normal()) : 1));
    const total = carried.reduce((sum, part) => sum + part, 0);
    const hasAgain = againNode && [from, to].includes(Number(againNode));
    const rate = want.peak * share * factorOf(way, src, dst) * Math.exp(want.noise * normal()) *
        (want.nodes > 2 ? whole / want.rails : 1);
    const time = 20 + size / 1e3 / rate;
    const bytes = size * 20;
    return {
        backend: 'weft', memory: want.gpus ? 'cuda' : 'host', mode, pattern: 'mesh', scope: 'inter', test: 'bandwidth',
        src: 'node' + from + ':' + kind + src, dst: 'node' + to + ':' + kind + dst, size_bytes: size, iters: 20,
        inflight: 4, buffers: 4, grouped: 1,
        time_us: {
            min: digits(time * 0.93), p10: digits(time * 0.96), p50: digits(time), p90: digits(time * 1.06),
            p99: digits(time * 1.2), p999: digits(time * 1.3), max: digits(time * 1.3), mean: digits(time), cv: 0.04
        },
        bw_gb_per_s: digits(size / 1e3 / time), messages_per_s: digits(1e6 / time), wrong_bytes: 0, verified_bytes: bytes,
        measured_bytes: bytes, rails: railsOf(to).map((name, i) => ({ name, bytes: Math.round(bytes * (carried[i] || 0) / total) })),
        cpu_s_per_gb: digits(0.4 + 2e4 / size), page_faults: 0,
        retransmits: hasAgain ? Number(again) : 0, failures: 0, resent_bytes: 0, stamp: []
    };
}

function host(node, endpoints) {
    const gpus = want.gpus ? Array.from({ length: endpoints }, (_, i) => {
        const degrees = hot.filter(entry => entry[0] === 'node' + node && Number(entry[1]) === i).map(entry => Number(entry[2]))[0];
        const at = celsius => ({ temperature_c: celsius, sm_clock_mhz: 1980, memory_clock_mhz: 2619, power_w: 300,
            throttling: null });
        return { gpu: i, name: 'Test GPU', pci: '', numa_node: 0, memory_bytes: 85899345920, endpoints: ['gpu' + i],
            before: at(48 + i % 3), after: at(degrees || 55 + i % 5) };
    }) : [];
    return { node: 'node' + node, name: want.host, kernel: '6.12', machine: 'x86_64', cpus: 64, memory_bytes: 549755813888,
        engine: 'uring', weft: '0.1.0', memory: want.gpus ? 'cuda' : 'host', gpus };
}

const out = fs.openSync('/dev/stdout', 'w');
let held = '';
function write(text) {
    held += text;
    if (held.length > 1 << 20) {
        fs.writeSync(out, held);
        held = '';
    }
}

const sizes = Array.from({ length: want.sizes }, (_, i) => want.first * want.factor ** i);
const sets = [];
write('{"schema": "weft.result/1", "command": "mesh", "version": "0.1.0", "started": "2026-11-25T12:00:00Z", "memory": "host",\n');
write('"emulated": false, "role": "server", "loopback": false, "one_machine": false, "interrupted": false, "cut_short": null,\n');
write('"error": null, "error_code": null, "exit_status": 0, "fallbacks": [], "faults": [], "ratios": [],\n"samples": [');
const nodes = Array.from({ length: want.nodes }, (_, i) => i);
const ends = node => want.nodes > 2 || node === 0 ? want.sources : want.targets;
const ways = want.nodes > 2 ? nodes.flatMap(from => nodes.filter(to => to !== from).map(to => [from, to]))
    : [[0, 1], [1, 0]].slice(0, want.ways);
let count = 0, now = 0;
for (const mode of all)
    for (const size of sizes) {
        const share = mode === 'loaded' ? 1 / Math.max(want.sources, want.targets) : 1;
        for (const [from, to] of ways)
            for (let src = 0; src < ends(from); src++)
                for (let dst = 0; dst < ends(to); dst++)
                    write((count++ ? ',\n' : '\n') + JSON.stringify(sample(from, to, src, dst, size, mode, share)));
        now += 1.5;
        sets.push({ backend: 'weft', mode, size_bytes: size, samples: count, median_p50_us: 1, min_bw_gb_per_s: want.peak * share,
            median_bw_gb_per_s: want.peak * share, peak_bw_gb_per_s: want.peak * share,
            aggregate_bw_gb_per_s: mode === 'loaded' ? want.peak * 2 : null, cpu_s_per_gb: 0.4, ended_s: now });
    }
const rails = nodes.flatMap(node => railsOf(node).map((name, i) => ({
    node: 'node' + node, name, speed_mbit: 25000, mtu: 9000, local: '192.0.2.' + (10 * node + i + 1),
    remote: '192.0.2.' + (10 * (want.nodes - 1 - node) + i + 1), device_bound: true, bytes: 2e9 * weights[i], sent_bytes: 1e9 * weights[i],
    received_bytes: 1e9 * weights[i], stalls: 0, failures: 0, resent_bytes: 0, retransmits: 0, damaged: 0, retired: false,
    channels: 4, channels_up: 4
})));
const setting = (value, origin) => ({ value, origin });
write('],\n' + JSON.stringify({
    host: nodes.map(node => host(node, ends(node))), rails,
    config: { chunk: setting(want.chunk, want.chunk === 524288 ? 'default' : 'command line'), window: setting(64, 'default'),
        seed: setting(42, 'default') },
    summary: {
        passed: true, verified: true, pairs: ways.reduce((sum, [from, to]) => sum + ends(from) * ends(to), 0), samples: count, samples_planned: count,
        wrong_bytes: 0, verified_bytes: count * 1e6, measured_bytes: count * 1e6,
        peak: { bw_gb_per_s: want.peak, size_bytes: sizes[sizes.length - 1], mode: 'isolated', src: 'node0:' + kind + 0,
            dst: 'node1:' + kind + 0 }, sets, duration_s: now
    }
}).slice(1) + '\n');
fs.writeSync(out, held);
