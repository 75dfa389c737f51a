/*
 * data.js: the data of the page as typed arrays, and numbers as a person reads them.
 *
 * A figure is decoded when it is first drawn, and its rows are sorted once by what can be chosen: after that a choice
 * costs as much as it has rows.
 */
(function () {
    'use strict';
    const weft = window.weft = window.weft || {};

    /* Numbers */

    // Four digits, without zeros that say nothing; whole numbers below a million in full.
    function number(value) {
        if (value === null || !Number.isFinite(value))
            return '\u2013';
        const size = Math.abs(value);
        if (Number.isInteger(value) && size < 1e6)
            return String(value);
        if (size >= 1000 && size < 1e6)
            return String(Math.round(value));
        const text = String(Number(value.toPrecision(4)));
        if (size >= 1e6 || (size < 1e-4 && size > 0))
            return Number(value.toPrecision(4)).toExponential().replace('e+', 'e');
        return text;
    }

    function bytes(value) {
        const units = ['K', 'M', 'G', 'T', 'P', 'E'];
        let at = -1;
        if (value === null || !Number.isFinite(value))
            return '\u2013';
        while (Math.abs(value) >= 1024 && at + 1 < units.length) {
            value /= 1024;
            at++;
        }
        return at < 0 ? number(value) : String(Number(value.toPrecision(4))) + units[at];
    }

    function bare(value, unit) {
        return unit === 'bytes' ? bytes(value) : number(value);
    }

    function withUnit(value, unit) {
        const text = bare(value, unit);
        return unit === '' || unit === 'bytes' || text === '\u2013' ? text : text + ' ' + unit;
    }

    // In a table whole numbers stand in full, but for sizes.
    function inTable(value, unit) {
        return unit !== 'bytes' && Number.isInteger(value) && Math.abs(value) < 1e15 ? String(value) : bare(value, unit);
    }

    weft.format = { number, bytes, bare, withUnit, inTable };

    /* Columns */

    function decodeNumbers(values, rows) {
        const numbers = new Float64Array(rows);
        for (let i = 0; i < rows; i++)
            numbers[i] = typeof values[i] === 'number' ? values[i] : NaN;
        return numbers;
    }

    // Pairs of a label and how many rows have it; when they end they begin anew.
    function decodeLabels(raw, rows) {
        const codes = new Uint32Array(rows);
        const runs = raw.runs || [];
        for (let i = 0, at = 0; i + 1 < runs.length && at < rows; i = (i + 2) % runs.length) {
            const end = Math.min(rows, at + Math.max(1, runs[i + 1]));
            codes.fill(runs[i], at, end);
            at = end;
        }
        return codes;
    }

    class Column {
        constructor(raw, rows) {
            this.name = raw.name;
            this.unit = raw.unit || '';
            this.role = raw.role;
            this.isNumber = !raw.labels;
            this.labels = raw.labels || null;
            this.numbers = this.isNumber ? decodeNumbers(raw.values || [], rows) : null;
            this.codes = this.isNumber ? null : decodeLabels(raw, rows);
        }

        // As in a hover, with the unit.
        text(row) {
            return this.isNumber ? withUnit(this.numbers[row], this.unit) : this.labels[this.codes[row]];
        }

        // As in the head of a table.
        get heading() {
            return this.unit ? this.name + ' (' + this.unit + ')' : this.name;
        }
    }

    /* Figures */

    class Figure {
        constructor(raw) {
            this.id = raw.id;
            this.kind = raw.kind;
            this.title = raw.title || raw.id;
            this.note = raw.note || '';
            this.scale = { x: raw.x || 'linear', y: raw.y || 'linear' };
            this.svg = raw.svg || '';
            this.rows = raw.rows || 0;
            this.columns = (raw.columns || []).map(column => new Column(column, this.rows));
            this.x = this.first('x');
            this.y = this.first('y');
            this.low = this.first('low');
            this.high = this.first('high');
            this.mark = this.first('mark');
            this.selects = this.all('select');
            this.values = this.all('value');
            this.series = this.all('series');
        }

        first(role) {
            return this.columns.find(column => column.role === role) || null;
        }

        all(role) {
            return this.columns.filter(column => column.role === role);
        }

        // The labels that these rows have, in their order, and the place of each among them: {labels, at}.
        present(column, rows) {
            const at = new Int32Array(column.labels.length).fill(-1);
            for (const row of rows)
                at[column.codes[row]] = 0;
            const labels = column.labels.filter((label, code) => at[code] === 0);
            for (let code = 0, place = 0; code < at.length; code++)
                if (at[code] === 0)
                    at[code] = place++;
            return { labels, at };
        }

        // Sorts the rows by their choice, once; within a choice they keep their order.
        index() {
            const choices = this.selects.reduce((count, column) => count * column.labels.length, 1);
            const start = new Uint32Array(choices + 1);
            const choiceOf = new Uint32Array(this.rows);
            for (const { codes, labels } of this.selects)
                for (let i = 0; i < this.rows; i++)
                    choiceOf[i] = choiceOf[i] * labels.length + codes[i];
            for (let i = 0; i < this.rows; i++)
                start[choiceOf[i] + 1]++;
            for (let i = 0; i < choices; i++)
                start[i + 1] += start[i];
            const next = start.slice();
            this.order = new Uint32Array(this.rows);
            for (let i = 0; i < this.rows; i++)
                this.order[next[choiceOf[i]]++] = i;
            this.start = start;
        }

        // The rows of a choice: a label's index for each column of `selects`.
        rowsOf(choice) {
            if (!this.order)
                this.index();
            let at = 0;
            this.selects.forEach((column, i) => {
                at = at * column.labels.length + choice[i];
            });
            return this.order.subarray(this.start[at], this.start[at + 1]);
        }

        // What is odd about a row; '' of most.
        markOf(row) {
            return this.mark && this.mark.codes[row] ? this.mark.labels[this.mark.codes[row]] : '';
        }

        // What all rows have in common tells no series from another.
        seriesOf(row) {
            const telling = this.series.filter(column => column.labels.length > 1);
            return (telling.length ? telling : this.series).map(column => column.text(row)).join(', ');
        }

        // [{name, rows}] of rows with the same texts of all columns of `series`, in the order of their first rows.
        groups(rows) {
            const groups = new Map();
            for (const row of rows) {
                let key = 0;
                for (const column of this.series)
                    key = column.isNumber ? key + '|' + column.numbers[row] : key + '|' + column.codes[row];
                let group = groups.get(key);
                if (!group) {
                    group = { name: this.series.length ? this.seriesOf(row) : this.y.name, rows: [] };
                    groups.set(key, group);
                }
                group.rows.push(row);
            }
            return Array.from(groups.values());
        }
    }

    // The decoded form of a figure, made when it is first asked for. What it was made of is let go.
    const decoded = new WeakMap();
    weft.figure = function (raw) {
        if (!decoded.has(raw)) {
            decoded.set(raw, new Figure(raw));
            for (const column of raw.columns || [])
                column.values = column.runs = null;
        }
        return decoded.get(raw);
    };

    weft.read = function () {
        return JSON.parse(document.getElementById('weft-data').textContent);
    };

    /* Elements: texts are always texts, never markup */

    weft.element = function (name, attributes, ...children) {
        const element = document.createElement(name);
        for (const [key, value] of Object.entries(attributes || {}))
            if (value !== null && value !== undefined && value !== false)
                element.setAttribute(key, value === true ? '' : value);
        element.append(...children);
        return element;
    };
})();
