// sample_data.js: data of report pages, as `weft report` writes them, for the tests: kind `mixed`, `cube` or `runs`.
'use strict';

// Repeatable: the same page in each run.
function randomOf(seed) {
    let state = seed >>> 0;
    return () => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return state / 4294967296;
    };
}

const MARKUP = '<img src=x onerror=alert(1)>';
const SIZES = Array.from({ length: 31 }, (_, i) => 2 ** i);
const UNITS = ['', 'K', 'M', 'G'];
const sizeText = size => size / 1024 ** Math.floor(Math.log2(size) / 10) + UNITS[Math.floor(Math.log2(size) / 10)];

const numbers = (name, unit, role, values) => ({ name, unit, role, values });
// Each label for so many rows, and then from the first one on again.
const labels = (name, role, list, every) => ({ name, unit: '', role, labels: list, runs: list.flatMap((_, i) => [i, every]) });

// Run-length form of a list of indexes.
function runs(name, role, list, codes) {
    const pairs = [];
    for (const code of codes) {
        if (pairs.length && pairs[pairs.length - 2] === code)
            pairs[pairs.length - 1]++;
        else
            pairs.push(code, 1);
    }
    return { name, unit: '', role, labels: list, runs: pairs };
}

const round = value => Number(value.toPrecision(5));

function cube(nodes, sizes, id = 'pairs') {
    const random = randomOf(7);
    const hosts = Array.from({ length: nodes }, (_, i) => `host${Math.floor(i / 8)}:gpu${i % 8}`);
    const rows = 2 * sizes.length * nodes * nodes;
    const rate = new Array(rows), p10 = new Array(rows), p90 = new Array(rows), count = new Array(rows), mark = new Array(rows);
    let row = 0;
    for (let mode = 0; mode < 2; mode++)
        for (const size of sizes)
            for (let from = 0; from < nodes; from++)
                for (let to = 0; to < nodes; to++, row++) {
                    const near = Math.floor(from / 8) === Math.floor(to / 8) ? 1 : 0.7;
                    const median = 12 * near * size / (size + 40000) * (mode ? 0.6 : 1) * (0.9 + 0.2 * random());
                    const weak = random() < 0.004;
                    rate[row] = from === to ? null : round(weak ? median * 0.4 : median);
                    p10[row] = from === to ? null : round(median * 0.9);
                    p90[row] = from === to ? null : round(median * 1.08);
                    count[row] = 20 + Math.floor(random() * 80);
                    mark[row] = weak && from !== to ? 1 : 0;
                }
    return { id, kind: 'heat', title: 'Rate of each pair', note: 'A cell is the rate of messages from the row to the column.',
        x: 'labels', y: 'labels', rows, columns: [
            labels('mode', 'select', ['isolated', 'loaded'], rows / 2),
            labels('size', 'select', sizes.map(sizeText), nodes * nodes),
            labels('source', 'y', hosts, nodes), labels('destination', 'x', hosts, 1),
            numbers('rate', 'GB/s', 'value', rate), numbers('p10', 'GB/s', 'value', p10), numbers('p90', 'GB/s', 'value', p90),
            numbers('samples', '', 'shown', count), runs('note', 'mark', ['', 'weak'], mark)] };
}

function lines() {
    const random = randomOf(3), sizes = SIZES.slice(10, 27), names = ['isolated', 'loaded', MARKUP];
    const size = [], rate = [], low = [], high = [], n = [], mark = [];
    names.forEach((_, at) => sizes.forEach((bytes, i) => {
        const value = 11 / (1 + at * 0.6) * bytes / (bytes + 60000) * (0.95 + 0.1 * random());
        size.push(bytes);
        rate.push(at === 2 && i === 4 ? null : round(value));
        low.push(round(value * 0.88));
        high.push(round(value * 1.07));
        n.push(100 - i);
        mark.push(at === 1 && i === 7 ? 1 : 0);
    }));
    return { id: 'rate', kind: 'lines', title: 'Rate by size', note: 'The line is the median of all pairs, the band from p10 to p90.',
        x: 'log', y: 'linear', rows: size.length, columns: [numbers('size', 'bytes', 'x', size), labels('mode', 'series', names, sizes.length),
            numbers('rate', 'GB/s', 'y', rate), numbers('p10', 'GB/s', 'low', low), numbers('p90', 'GB/s', 'high', high),
            numbers('samples', '', 'shown', n), runs('note', 'mark', ['', 'few samples'], mark)] };
}

function points() {
    const random = randomOf(5), count = 240;
    const size = [], time = [], mark = [];
    for (let i = 0; i < count; i++) {
        const bytes = 2 ** (6 + i % 18);
        size.push(bytes);
        time.push(round((14 + bytes / 9000) * (0.8 + 0.5 * random() ** 3)));
        mark.push(i % 97 === 50 ? 1 : 0);
    }
    return { id: 'latency', kind: 'points', title: 'Time of a message', note: null, x: 'log', y: 'log', rows: count,
        columns: [numbers('size', 'bytes', 'x', size), labels('rail', 'series', ['eth0', 'eth1'], 1),
            numbers('time', 'us', 'y', time), runs('note', 'mark', ['', 'outlier'], mark)] };
}

function bars() {
    const tools = ['weft', 'plain sockets', 'iperf3', 'Open MPI', 'UCX'], sizes = ['64K', '1M', '16M'];
    const rate = [], low = [], high = [], mark = [];
    sizes.forEach((_, i) => tools.forEach((tool, at) => {
        const value = (10.7 - at * 0.9) * (0.6 + 0.2 * i);
        rate.push(round(value));
        low.push(round(value * 0.93));
        high.push(round(value * 1.05));
        mark.push(at === 2 && i === 1 ? 1 : 0);
    }));
    return { id: 'beside', kind: 'bars', title: 'Beside other tools', note: null, x: 'labels', y: 'linear', rows: rate.length,
        columns: [labels('tool', 'x', tools, 1), labels('size', 'series', sizes, tools.length), numbers('rate', 'GB/s', 'y', rate),
            numbers('p10', 'GB/s', 'low', low), numbers('p90', 'GB/s', 'high', high), runs('note', 'mark', ['', 'cannot be right'], mark)] };
}

function smallHeat() {
    const hosts = ['host0', MARKUP, 'host2', 'host3'], rate = [], mark = [];
    for (let i = 0; i < 16; i++) {
        rate.push(i % 5 === 0 ? null : round(3 + (i * 7 % 11) / 8));
        mark.push(i === 6 ? 1 : 0);
    }
    return { id: 'matrix', kind: 'heat', title: 'Each pair', note: null, x: 'labels', y: 'labels', rows: 16, columns: [
        labels('source', 'y', hosts, 4), labels('destination', 'x', hosts, 1), numbers('rate', 'GB/s', 'value', rate),
        runs('note', 'mark', ['', 'weak'], mark)] };
}

function table() {
    const count = 1203;
    return { id: 'settings', kind: 'table', title: 'Settings', note: 'What both nodes were set to.', x: 'labels', y: 'labels', rows: count,
        columns: [labels('setting', 'shown', Array.from({ length: count }, (_, i) => `setting_${i}`), 1),
            labels('value', 'shown', ['auto', 'on', MARKUP], 1),
            numbers('weight', '%', 'shown', Array.from({ length: count }, (_, i) => i / 7))] };
}

const image = () => ({ id: 'topology', kind: 'image', title: 'What is near what', note: null, rows: 0, columns: [],
    svg: '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 90" width="300" height="90"><rect x="5" y="5" width="290" height="80" ' +
        'fill="#e8eef4" stroke="#345"/><text x="150" y="50" text-anchor="middle" font-family="sans-serif">NUMA node 0</text></svg>' });

function overview(count) {
    const random = randomOf(11);
    return { id: 'runs', kind: 'bars', title: 'Rate of each run', note: 'Messages of 1M, the median of all pairs.', x: 'labels', y: 'linear',
        rows: count, columns: [labels('run', 'x', Array.from({ length: count }, (_, i) => `run-${i}.json`), 1),
            numbers('rate', 'GB/s', 'y', Array.from({ length: count }, () => round(9 + 2 * random())))] };
}

const mixedFigures = () => [lines(), smallHeat(), points(), bars(), table(), image()];

function report(kind) {
    const verdict = [{ level: 'good', text: 'All 4032 pairs pass: 0 wrong of 11.0 GB verified.' },
        { level: 'plain', text: `The median rate is 10.7 GB/s for messages of 1M, from ${MARKUP}.` },
        { level: 'doubt', text: '7 pairs have fewer than 20 samples.' }, { level: 'bad', text: 'host3 sends at half of the rate of the others.' }];
    const data = { schema: 'weft.report/1', version: '0.3.0', title: 'Weft: what this network gives', made: '2026-11-25T12:00:00Z', verdict,
        problems: [], figures: [], runs: [] };
    const run = (name, figures) => ({ name, title: `weft mesh, ${MARKUP}`, verdict: verdict.slice(0, 2), figures });
    if (kind === 'mixed') {
        data.problems = [{ file: `${MARKUP}.json`, text: 'ends in the middle of a line' }];
        data.runs = [run('mesh.json', mixedFigures())];
    } else if (kind === 'cube') {
        data.runs = [run('mesh.json', [cube(64, SIZES), lines()])];
    } else if (kind === 'runs') {
        data.figures = [overview(1000)];
        data.runs = Array.from({ length: 1000 }, (_, i) => run(`run-${i}.json`, [lines(), smallHeat()]));
    } else {
        throw new Error(`kind '${kind}': must be mixed, cube or runs`);
    }
    return data;
}

module.exports = { report, MARKUP };
