// expected.js: the data of a page, read without its scripts: what its figures, hovers and tables must say.
'use strict';

function dataOf(html) {
    const found = /<script type="application\/json" id="weft-data">([^]*?)<\/script>/.exec(html);
    if (!found)
        throw new Error('the page has no data');
    return JSON.parse(found[1]);
}

const decoded = new WeakMap(); // of columns in the form of runs: a list of indexes

// A column's value of a row: a number, null, or a text.
function valueOf(column, row) {
    if (!column.labels)
        return typeof column.values[row] === 'number' ? column.values[row] : null;
    if (!decoded.has(column)) {
        const codes = [];
        for (let i = 0; i < column.runs.length; i += 2)
            for (let count = column.runs[i + 1]; count > 0; count--)
                codes.push(column.runs[i]);
        decoded.set(column, codes);
    }
    const codes = decoded.get(column);
    return column.labels[codes[row % codes.length]];
}

const of = (figure, role) => figure.columns.filter(column => column.role === role);

// The rows with these labels of the columns of role `select`.
function rowsOf(figure, choice) {
    const selects = of(figure, 'select');
    const rows = [];
    for (let row = 0; row < figure.rows; row++)
        if (selects.every((column, i) => valueOf(column, row) === choice[i]))
            rows.push(row);
    return rows;
}

const firstChoice = figure => of(figure, 'select').map(column => column.labels[0]);

// The labels of a column that some rows have, in their order.
const present = (column, rows) => column.labels.filter(label => rows.some(row => valueOf(column, row) === label));
const draws = figure => ['lines', 'points', 'bars', 'heat'].includes(figure.kind);

// Does a text have this number in it, as a person reads it, within its digits?
function tells(text, value, unit) {
    const factors = { K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 };
    for (const [, digits, factor] of text.matchAll(/(-?\d+(?:\.\d+)?(?:e-?\d+)?)([KMGT]?)/g)) {
        const number = Number(digits) * (unit === 'bytes' && factor ? factors[factor] : 1);
        if (number === value || Math.abs(number - value) <= 6e-4 * Math.abs(value))
            return true;
    }
    return false;
}

module.exports = { dataOf, valueOf, of, rowsOf, firstChoice, present, draws, tells };
