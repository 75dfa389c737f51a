/*
 * hover.js: what is said about single values and about a whole chart: hovers, the list of marks, the sentence for those
 * who do not see the chart. Elements and plain texts, never markup: names come from files.
 */
(function () {
    'use strict';
    const weft = window.weft;
    const element = weft.element;
    const MARKS_LISTED = 12;

    function spread(figure, row) {
        if (!figure.low || !figure.high || Number.isNaN(figure.low.numbers[row]) || Number.isNaN(figure.high.numbers[row]))
            return '';
        return weft.format.bare(figure.low.numbers[row], figure.low.unit) + ' to ' +
            weft.format.withUnit(figure.high.numbers[row], figure.high.unit);
    }

    function line(name, value, strong) {
        return element('tr', { class: strong ? 'strong' : null }, element('th', {}, name), element('td', {}, value));
    }

    function head(figure, row) {
        if (figure.kind === 'heat')
            return figure.y.text(row) + ' \u2192 ' + figure.x.text(row);
        return figure.series.length ? figure.seriesOf(row) : figure.title;
    }

    // All that is known of one row. value: the column that a heat map is coloured by.
    function one(figure, row, value) {
        const table = element('table');
        for (const column of figure.kind === 'heat' ? [] : [figure.x, figure.y])
            if (column)
                table.append(line(column.name, column.text(row), column === figure.y));
        if (value)
            table.append(line(value.name, value.text(row), true));
        if (spread(figure, row))
            table.append(line(figure.low.name + ' to ' + figure.high.name, spread(figure, row)));
        for (const column of figure.columns)
            if (column.role === 'shown' || (column.role === 'value' && column !== value))
                table.append(line(column.name, column.text(row)));
        const mark = figure.markOf(row);
        if (mark)
            table.append(line(weft.MARK + ' ' + figure.mark.name, mark, true));
        return element('div', { class: 'hover' }, element('strong', {}, head(figure, row)), table);
    }

    // The rows at one place of a line chart, one below the other. dots: [{row, colour}]
    function several(figure, dots) {
        const table = element('table');
        const shown = figure.columns.filter(column => column.role === 'shown');
        for (const { row, colour } of dots) {
            const dot = element('span', { class: 'dot' });
            dot.style.background = colour;
            const name = element('th', {}, dot, figure.series.length ? figure.seriesOf(row) : figure.y.name);
            const more = [];
            if (spread(figure, row))
                more.push(spread(figure, row));
            for (const column of shown)
                more.push(column.name + ' ' + column.text(row));
            if (figure.markOf(row))
                more.push(weft.MARK + ' ' + figure.markOf(row));
            table.append(element('tr', {}, name, element('td', { class: 'strong' }, figure.y.text(row)),
                element('td', {}, more.join(', '))));
        }
        return element('div', { class: 'hover' },
            element('strong', {}, figure.x.name + ' ' + figure.x.text(dots[0].row)), table);
    }

    // Where a row is, and its value, in one line.
    function place(figure, row, value) {
        const y = value || figure.y;
        const where = figure.kind === 'heat' ? head(figure, row) :
            (figure.series.length ? figure.seriesOf(row) + ', ' : '') + figure.x.name + ' ' + figure.x.text(row);
        return where + ': ' + y.text(row);
    }

    // The marked rows of what is chosen, as a list; null where there are none.
    function marks(figure, view) {
        if (!figure.mark || figure.kind === 'table')
            return null;
        const marked = Array.from(view.rows).filter(row => figure.markOf(row));
        if (marked.length === 0)
            return null;
        const list = element('ul');
        for (const row of marked.slice(0, MARKS_LISTED))
            list.append(element('li', {}, figure.markOf(row) + ': ' + place(figure, row, view.value)));
        if (marked.length > MARKS_LISTED)
            list.append(element('li', {}, 'and ' + (marked.length - MARKS_LISTED) + ' more: the table has them all'));
        return element('div', { class: 'marks' },
            element('p', {}, weft.MARK + ' ' + marked.length + ' marked of ' + view.rows.length), list);
    }

    function range(column, rows) {
        if (!column.isNumber)
            return column.labels.length + ' labels';
        const values = Array.from(rows, row => column.numbers[row]).filter(value => !Number.isNaN(value)).sort((a, b) => a - b);
        if (values.length === 0)
            return 'no values';
        return weft.format.bare(values[0], column.unit) + ' to ' + weft.format.withUnit(values[values.length - 1], column.unit) +
            ', in the middle ' + weft.format.withUnit(values[Math.floor((values.length - 1) / 2)], column.unit);
    }

    // What the chart shows, in a sentence.
    function summary(figure, view) {
        const chosen = weft.choiceText(figure, view.choice);
        const start = figure.title + (chosen ? ' (' + chosen + ')' : '') + '. ';
        if (view.rows.length === 0)
            return start + 'No values for this choice.';
        if (figure.kind === 'heat')
            return start + 'Heat map of ' + view.value.name + ' by ' + figure.y.name + ' and ' + figure.x.name + ': ' +
                range(view.value, view.rows) + '.';
        const kinds = { lines: 'Lines', points: 'Points', bars: 'Bars' };
        const groups = figure.groups(view.rows).length;
        return start + kinds[figure.kind] + ' of ' + figure.y.name + ' over ' + figure.x.name +
            (groups > 1 ? ' for ' + groups + ' series' : '') + ': ' + range(figure.y, view.rows) + '.';
    }

    weft.hover = { one, several, marks, summary };
})();
