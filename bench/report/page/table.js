/*
 * table.js: the values of a figure as a table: each row, or of a heat map a matrix. Long ones come in pages.
 */
(function () {
    'use strict';
    const weft = window.weft;
    const element = weft.element;
    const PAGE_ROWS = 500;
    const PAGE_CELLS = 40000; // of a matrix, whose rows are long
    const MARK = '\u25c6';

    // A number's exact value is there beside the rounded one that is shown.
    function numberCell(value, unit, name) {
        const cell = element(name || 'td', { class: 'number' }, weft.format.inTable(value, unit));
        if (Number.isFinite(value))
            cell.setAttribute('data-value', String(value));
        return cell;
    }

    function choiceText(figure, choice) {
        return figure.selects.map((column, i) => column.name + ' ' + column.labels[choice[i]]).join(', ');
    }

    function captionText(figure, view, what) {
        const choice = choiceText(figure, view.choice);
        return figure.title + (what ? ': ' + what : '') + (choice ? ' (' + choice + ')' : '');
    }

    // pages(COUNT, SIZE, MAKE): an element that shows MAKE(from, to), with buttons where COUNT is more than a page.
    function pages(count, size, what, make) {
        const place = element('div', { class: 'sheet', tabindex: '0', role: 'region', 'aria-label': what });
        if (count <= size) {
            place.append(make(0, count));
            return place;
        }
        let from = 0;
        const said = element('span', { 'aria-live': 'polite' });
        const button = (text, to) => {
            const made = element('button', { type: 'button' }, text);
            made.addEventListener('click', () => {
                from = to();
                show();
            });
            return made;
        };
        const last = Math.floor((count - 1) / size) * size;
        const first = button('First', () => 0);
        const before = button('Previous', () => Math.max(0, from - size));
        const after = button('Next', () => Math.min(last, from + size));
        const end = button('Last', () => last);
        function show() {
            const to = Math.min(count, from + size);
            place.replaceChildren(make(from, to));
            said.textContent = 'Rows ' + (from + 1) + ' to ' + to + ' of ' + count;
            first.disabled = before.disabled = from === 0;
            after.disabled = end.disabled = from === last;
        }
        show();
        return element('div', {}, element('div', { class: 'pages' }, first, before, after, end, said), place);
    }

    function bodyCell(figure, column, row) {
        if (column.isNumber)
            return numberCell(column.numbers[row], column.unit);
        const text = column.text(row);
        return element('td', {}, column.role === 'mark' && text ? MARK + ' ' + text : text);
    }

    // The first column that names a row is its head.
    function rowTable(figure, view) {
        const columns = figure.columns.filter(column => column.role !== 'select');
        let head = columns.findIndex(column => column.role === 'x');
        if (head < 0)
            head = columns.findIndex(column => !column.isNumber);
        head = Math.max(0, head);
        if (head > 0)
            columns.unshift(columns.splice(head, 1)[0]);
        const caption = captionText(figure, view);
        return pages(view.rows.length, PAGE_ROWS, caption, (from, to) => {
            const heads = columns.map(column =>
                element('th', { scope: 'col', class: column.isNumber ? 'number' : null }, column.heading));
            const body = element('tbody');
            for (let i = from; i < to; i++) {
                const row = view.rows[i];
                const line = element('tr', { class: figure.markOf(row) ? 'marked' : null });
                columns.forEach((column, at) => {
                    let cell = bodyCell(figure, column, row);
                    if (at === 0) {
                        const named = element('th', { scope: 'row', class: cell.className || null }, cell.textContent);
                        if (cell.hasAttribute('data-value'))
                            named.setAttribute('data-value', cell.getAttribute('data-value'));
                        cell = named;
                    }
                    line.append(cell);
                });
                body.append(line);
            }
            return element('table', {}, element('caption', {}, caption),
                element('thead', {}, element('tr', {}, ...heads)), body);
        });
    }

    function matrixTable(figure, view) {
        const across = view.across.labels, down = view.down.labels;
        const at = new Int32Array(across.length * down.length).fill(-1);
        for (const row of view.rows)
            at[view.down.at[figure.y.codes[row]] * across.length + view.across.at[figure.x.codes[row]]] = row;
        const what = view.value.heading;
        const caption = captionText(figure, view, what) + '. Rows: ' + figure.y.name + ', columns: ' + figure.x.name;
        const size = Math.max(10, Math.min(PAGE_ROWS, Math.floor(PAGE_CELLS / across.length)));
        return pages(down.length, size, caption, (from, to) => {
            const heads = across.map(label => element('th', { scope: 'col', class: 'number' }, label));
            const corner = element('th', { scope: 'col' }, figure.y.name + ' \\ ' + figure.x.name);
            const body = element('tbody');
            for (let y = from; y < to; y++) {
                const line = element('tr', {}, element('th', { scope: 'row' }, down[y]));
                for (let x = 0; x < across.length; x++) {
                    const row = at[y * across.length + x];
                    const cell = row < 0 ? element('td', { class: 'number' }) :
                        numberCell(view.value.numbers[row], view.value.unit);
                    const mark = row < 0 ? '' : figure.markOf(row);
                    if (mark) {
                        cell.classList.add('marked');
                        cell.append(' ', element('abbr', { title: mark }, MARK));
                    }
                    line.append(cell);
                }
                body.append(line);
            }
            return element('table', { class: 'matrix' }, element('caption', {}, caption),
                element('thead', {}, element('tr', {}, corner, ...heads)), body);
        });
    }

    // The table of what is chosen. view: {choice, rows, value, form: 'matrix' or 'rows'}
    weft.table = function (figure, view) {
        if (view.rows.length === 0)
            return element('p', {}, 'No values for this choice.');
        return figure.kind === 'heat' && view.form !== 'rows' ? matrixTable(figure, view) : rowTable(figure, view);
    };
    weft.choiceText = choiceText;
    weft.MARK = MARK;
})();
