// page_test.js FILE...: opens report pages in a browser, and compares all that is seen there with their data: figures,
// charts, hovers, tables, the choice of a run; on screens of all sizes, light, dark and on paper.
'use strict';
const fs = require('fs');
const path = require('path');
const { pathToFileURL } = require('url');
const { Browser, pause } = require('./browser.js');
const expected = require('./expected.js');

let failures = 0;
let file = '';

function fail(text) {
    console.log(`FAILED: ${path.basename(file)}: ${text}`);
    failures++;
}

function same(is, should, what) {
    if (JSON.stringify(is) !== JSON.stringify(should))
        fail(`${what}: ${JSON.stringify(is).slice(0, 300)} instead of ${JSON.stringify(should).slice(0, 300)}`);
}

const shownFigures = (data, run) => data.figures.concat(data.runs.length ? data.runs[run].figures : []);

async function checkFigures(page, data, run, charts) {
    const figures = shownFigures(data, run);
    same(await page.evaluate('Array.from(document.querySelectorAll(".figure h3"), title => title.textContent)'),
        figures.map(figure => figure.title), 'titles of figures');
    same(await page.evaluate('weft.charts.map(chart => chart.id)'), charts ? figures.filter(expected.draws).map(figure => figure.id) : [],
        'charts');
    const painted = await page.evaluate(`weft.charts.map(({ id, instance }) => {
        const canvas = instance.getDom().querySelector('canvas');
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
        copy.drawImage(canvas, 0, 0);
        const pixels = new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        const label = instance.getDom().getAttribute('aria-label') || '';
        return { id, colours: new Set(pixels.filter((_, i) => i % 3 === 0)).size, role: instance.getDom().getAttribute('role'), label };
    })`);
    for (const { id, colours, role, label } of painted) {
        if (colours < 8)
            fail(`${id}: the chart has ${colours} colours: nothing is painted`);
        if (role !== 'img' || label.length < 20)
            fail(`${id}: role '${role}', label '${label}'`);
    }
    const loose = await page.evaluate('Array.from(document.querySelectorAll("select, input, button")).filter(' +
        'control => control.labels.length === 0 && control.textContent.trim() === "").length');
    same(loose, 0, 'controls without a label');
}

// Points at an item of a chart with the mouse, and returns what the hover says.
async function hoverText(page, at, series, item) {
    await page.moveMouse(1, 1);
    const place = await page.evaluate(`(() => {
        const { instance } = weft.charts[${at}];
        const series = instance.getOption().series[${series}], item = series.data[${item}];
        instance.getDom().scrollIntoView({ block: 'center' });
        const [x, y] = instance.convertToPixel({ seriesIndex: ${series} }, (item.value || item).slice(0, 2));
        const box = instance.getDom().getBoundingClientRect();
        // A point in a corner of the plane answers from inside of it.
        const toward = (value, middle) => value + 2 * Math.sign(middle - value);
        return { x: box.left + toward(x, box.width / 2), y: box.top + toward(y, box.height / 2) };
    })()`);
    await page.moveMouse(place.x + 4, place.y + 1);
    await page.moveMouse(place.x, place.y);
    return page.evaluate(`(() => {
        const hover = weft.charts[${at}].instance.getDom().querySelector('.hover');
        return hover && hover.parentElement.style.visibility !== 'hidden' ? hover.innerText : '';
    })()`);
}

function checkHover(figure, row, text, value) {
    const told = ['x', 'y', 'low', 'high', 'series', 'shown', 'mark'].flatMap(role => expected.of(figure, role));
    if (value)
        told.push(value);
    for (const column of told) {
        const is = expected.valueOf(column, row);
        // What all rows have in common is not told of a series.
        if (is === null || is === '' || (column.role === 'series' && column.labels.length === 1))
            continue;
        if (typeof is === 'number' ? !expected.tells(text, is, column.unit) : !text.includes(is))
            fail(`${figure.id}: the hover of row ${row} does not tell ${column.name} ${is}: ${JSON.stringify(text)}`);
        if (typeof is === 'number' && column.unit && column.unit !== 'bytes' && !text.includes(column.unit))
            fail(`${figure.id}: the hover of row ${row} does not tell the unit ${column.unit}`);
    }
}

async function checkHovers(page, figures) {
    const drawn = figures.filter(expected.draws);
    for (let at = 0; at < drawn.length; at++) {
        const figure = drawn[at];
        const series = await page.evaluate(`weft.charts[${at}].instance.getOption().series.map(series => ({ id: series.id,
            rows: ['line', 'scatter', 'bar', 'heatmap'].includes(series.type) && series.id !== 'marks' ?
                series.data.map(item => (item.value || item).slice(-1)[0]) : [] }))`);
        const rows = series.flatMap(({ rows }) => rows).sort((a, b) => a - b);
        const main = figure.kind === 'heat' ? expected.of(figure, 'value')[0] : expected.of(figure, 'y')[0];
        const should = expected.rowsOf(figure, expected.firstChoice(figure)).filter(row => expected.valueOf(main, row) !== null);
        same(rows.filter(row => expected.valueOf(main, row) !== null), should, `${figure.id}: rows that are drawn`);
        const mark = expected.of(figure, 'mark')[0];
        const marked = mark ? should.filter(row => expected.valueOf(mark, row)).slice(0, 2) : [];
        const wanted = [should[0], should[Math.floor(should.length / 2)], should[should.length - 1], ...marked];
        for (const row of figure.kind === 'points' || figure.rows > 600 && figure.kind === 'bars' ? wanted.slice(0, 1) : wanted) {
            const index = series.findIndex(({ rows }) => rows.includes(row));
            if (figure.kind === 'bars') { // bars stand beside their place, so this is said by their number
                await page.evaluate(`weft.charts[${at}].instance.dispatchAction({ type: 'showTip', seriesIndex: ${index},
                    dataIndex: ${series[index].rows.indexOf(row)} })`);
                await pause(60);
                checkHover(figure, row, await page.evaluate(`weft.charts[${at}].instance.getDom().querySelector('.hover').innerText`));
                continue;
            }
            const text = await hoverText(page, at, index, series[index].rows.indexOf(row));
            if (figure.kind !== 'points') { // of points on top of each other another one may answer
                checkHover(figure, row, text, figure.kind === 'heat' ? main : null);
            } else if (!text) {
                fail(`${figure.id}: no hover of row ${row}`);
            }
        }
    }
}

// All pages of the table of figure `at`, a list of lines each; cells are {text, value}.
async function tableOf(page, at) {
    return page.evaluate(`(() => {
        const place = document.querySelectorAll('.figure')[${at}];
        const cells = line => Array.from(line.children, cell => ({ text: cell.textContent,
            value: cell.hasAttribute('data-value') ? Number(cell.dataset.value) : null, tag: cell.tagName, scope: cell.scope }));
        const lines = [];
        for (let pages = 0; pages < 1000; pages++) {
            const table = place.querySelector('details table');
            if (!table || !table.caption)
                return null;
            if (lines.length === 0)
                lines.push(cells(table.tHead.rows[0]));
            for (const row of table.tBodies[0].rows)
                lines.push(cells(row));
            const next = Array.from(place.querySelectorAll('.pages button')).find(button => button.textContent === 'Next');
            if (!next || next.disabled)
                break;
            next.click();
        }
        return lines;
    })()`);
}

function checkCell(figure, column, row, cell) {
    const is = expected.valueOf(column, row);
    const right = typeof is === 'number' ? cell.value === is && expected.tells(cell.text, is, column.unit) :
        is === null ? cell.value === null : cell.text.replace(/^\u25c6 /, '') === is;
    if (!right)
        fail(`${figure.id}: table: ${column.name} of row ${row} is ${JSON.stringify(cell)} instead of ${JSON.stringify(is)}`);
    return right;
}

function checkRows(figure, choice, lines) {
    const rows = expected.rowsOf(figure, choice);
    same(lines.length - 1, rows.length, `${figure.id}: rows of the table`);
    const heads = lines[0].map(cell => cell.text);
    const columns = heads.map(head => figure.columns.find(column => (column.unit ? `${column.name} (${column.unit})` : column.name) === head));
    same(heads.length, figure.columns.filter(column => column.role !== 'select').length, `${figure.id}: columns of the table`);
    for (let i = 0; i < rows.length; i++)
        if (!columns.every((column, at) => checkCell(figure, column, rows[i], lines[i + 1][at])))
            return;
    if (lines.slice(1).some(line => line[0].tag !== 'TH' || line[0].scope !== 'row') || lines[0].some(cell => cell.scope !== 'col'))
        fail(`${figure.id}: heads of the table without their scope`);
}

function checkMatrix(figure, choice, value, lines) {
    const across = expected.of(figure, 'x')[0], down = expected.of(figure, 'y')[0];
    const rows = expected.rowsOf(figure, choice);
    const columns = expected.present(across, rows), heads = expected.present(down, rows);
    same(lines[0].slice(1).map(cell => cell.text), columns, `${figure.id}: columns of the matrix`);
    same(lines.slice(1).map(line => line[0].text), heads, `${figure.id}: rows of the matrix`);
    for (const row of rows) {
        const y = heads.indexOf(expected.valueOf(down, row)), x = columns.indexOf(expected.valueOf(across, row));
        const mark = expected.of(figure, 'mark')[0], cell = lines[y + 1][x + 1];
        if (!checkCell(figure, value, row, cell))
            return;
        if (mark && (expected.valueOf(mark, row) !== '') !== cell.text.includes('\u25c6')) {
            fail(`${figure.id}: mark of row ${row} in the matrix`);
            return;
        }
    }
}

// Sets the control with this label, and returns whether there is one.
async function set(page, at, label, index) {
    return page.evaluate(`(() => {
        const place = document.querySelectorAll('.figure')[${at}];
        const label = Array.from(place.querySelectorAll('label')).find(label => label.textContent === ${JSON.stringify(label)});
        if (!label)
            return false;
        const control = document.getElementById(label.htmlFor);
        control.value = control.options[${index}].value;
        control.dispatchEvent(new Event('change', { bubbles: true }));
        return true;
    })()`);
}

async function checkTables(page, figures) {
    for (let at = 0; at < figures.length; at++) {
        const figure = figures[at];
        if (figure.rows === 0)
            continue;
        await page.evaluate(`document.querySelectorAll('.figure')[${at}].querySelector('details').open = true`);
        await page.until(`document.querySelectorAll('.figure')[${at}].querySelector('details table') !== null`, 'the table is there');
        let choice = expected.firstChoice(figure);
        const heat = figure.kind === 'heat', values = expected.of(figure, 'value');
        const check = async value => heat ? checkMatrix(figure, choice, value, await tableOf(page, at)) :
            checkRows(figure, choice, await tableOf(page, at));
        await check(values[0]);
        if (choice.length) {
            const [first] = expected.of(figure, 'select');
            await set(page, at, first.name, first.labels.length - 1);
            choice = [first.labels[first.labels.length - 1], ...choice.slice(1)];
            await check(values[0]);
        }
        if (heat && values.length > 1) {
            await set(page, at, 'value', 1);
            await check(values[1]);
        }
        if (heat && await set(page, at, 'table as', 1))
            checkRows(figure, choice, await tableOf(page, at));
        await page.evaluate(`document.querySelectorAll('.figure')[${at}].querySelector('details').open = false`);
    }
}

async function checkLooks(page, charts) {
    await page.evaluate('document.querySelectorAll("details").forEach(details => { details.open = true; })');
    for (const dark of [false, true])
        for (const width of [360, 1280, 2560, 3840]) {
            await page.look({ width, dark });
            await pause(100);
            const is = await page.evaluate(`({ wide: document.documentElement.scrollWidth,
                out: weft.charts.filter(({ instance }) => Math.abs(instance.getWidth() - instance.getDom().clientWidth) > 1).length,
                ground: getComputedStyle(document.documentElement).backgroundColor,
                inks: weft.charts.map(({ instance }) => instance.getOption().textStyle.color),
                ink: getComputedStyle(document.documentElement).getPropertyValue('--ink').trim() })`);
            const what = `${width} pixels, ${dark ? 'dark' : 'light'}`;
            if (is.wide > width)
                fail(`${what}: the page is ${is.wide} wide`);
            same(is.out, 0, `${what}: charts that are not as wide as their place`);
            const light = Number(/\d+/.exec(is.ground)[0]);
            if (dark ? light > 60 : light < 200)
                fail(`${what}: the ground is ${is.ground}`);
            if (charts)
                same(is.inks.filter(ink => ink !== is.ink), [], `${what}: charts in another colour than ${is.ink}`);
        }
}

async function checkPaper(page) {
    const before = await page.evaluate('document.querySelectorAll("details[open]").length');
    const { data } = await page.send('Page.printToPDF', { printBackground: false });
    if (data.length < 10000)
        fail(`printed it is ${data.length} bytes`);
    same(await page.evaluate('document.querySelectorAll("details[open]").length'), before, 'open tables after it was printed');
}

// A series that is switched off takes its marks along, and comes back.
async function checkLegends(page) {
    const left = await page.evaluate(`weft.charts.map(({ id, instance }) => {
        const option = () => instance.getOption(), names = option().legend && option().legend[0] ? option().legend[0].data : [];
        const marks = () => (option().series.find(series => series.id === 'marks') || { data: [] }).data.length;
        const before = marks();
        names.forEach(name => instance.dispatchAction({ type: 'legendToggleSelect', name }));
        const without = names.length ? marks() : 0;
        names.forEach(name => instance.dispatchAction({ type: 'legendToggleSelect', name }));
        return { id, without, lost: before - marks() };
    })`);
    for (const { id, without, lost } of left)
        if (without !== 0 || lost !== 0)
            fail(`${id}: ${without} marks without their series, ${lost} lost when it came back`);
}

async function checkMarkup(page, html) {
    same(await page.evaluate('document.querySelectorAll("img[onerror], img[src=\\"x\\"], body script + img").length'), 0, 'markup from names');
    if (html.includes('\\u003cimg src=x') && !await page.evaluate('document.body.innerText.includes("<img src=x onerror=alert(1)>")'))
        fail('a name with markup is not there as a text');
}

async function checkRuns(page, data, charts) {
    if (data.runs.length < 2)
        return;
    const last = data.runs.length - 1;
    await page.evaluate(`(() => {
        const control = document.querySelector('.chooser select');
        control.value = '${last}';
        control.dispatchEvent(new Event('change'));
    })()`);
    await page.until('document.documentElement.dataset.finished === "1"', 'the charts of another run are drawn');
    await checkFigures(page, data, last, charts);
    same(await page.evaluate('document.querySelector(".run .note").textContent'), data.runs[last].name, 'name of the run');
    if (data.runs.length <= 20)
        return;
    const wanted = data.runs[Math.floor(last / 2)].name;
    const left = await page.evaluate(`(() => {
        const filter = document.querySelector('.chooser input');
        filter.value = ${JSON.stringify(wanted.toUpperCase())};
        filter.dispatchEvent(new Event('input'));
        return document.querySelector('.chooser select').options.length;
    })()`);
    same(left, data.runs.filter(run => `${run.name} ${run.title}`.includes(wanted)).length, `runs with '${wanted}'`);
    await page.until('document.documentElement.dataset.finished === "1"', 'the charts of the run that was found are drawn');
    same(await page.evaluate('document.querySelector(".run .note").textContent'), wanted, 'name of the run that was found');
}

async function checkPage(browser) {
    const html = fs.readFileSync(file, 'utf8'), data = expected.dataOf(html), charts = html.includes('Apache Software Foundation');
    const page = await browser.page();
    try {
        await checkAll(page, html, data, charts);
    } finally {
        for (const complaint of page.complaints)
            fail(complaint);
        await page.close();
    }
}

async function checkAll(page, html, data, charts) {
    await page.look({ width: 1280, height: 1600 });
    await page.open(pathToFileURL(path.resolve(file)).href);
    const finished = await page.evaluate('weft.finished');
    console.log(`${path.basename(file)}: drawn after ${Math.round(finished)} ms`);
    if (!(finished > 0))
        fail('the page does not say when it was drawn');
    await checkFigures(page, data, 0, charts);
    same(await page.evaluate('document.querySelectorAll(".without").length'), charts ? 0 : 1, 'notes that there are no charts');
    await checkMarkup(page, html);
    if (charts)
        await checkHovers(page, shownFigures(data, 0));
    await checkLegends(page);
    await checkTables(page, shownFigures(data, 0));
    await checkLooks(page, charts);
    await checkPaper(page);
    await checkRuns(page, data, charts);
    await checkMarkup(page, html);
}

async function main() {
    const browser = await Browser.start();
    try {
        for (file of process.argv.slice(2)) {
            const start = Date.now();
            await checkPage(browser);
            console.log(`${path.basename(file)}: checked in ${((Date.now() - start) / 1000).toFixed(1)} s`);
        }
    } finally {
        await browser.stop();
    }
}

main().catch(error => fail(error.stack)).finally(() => process.exit(failures ? 1 : 0));
