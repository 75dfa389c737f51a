/*
 * page.js: builds the page from its data: the figures over all runs, the choice of a run, and that run's figures.
 *
 * window.weft.charts has what is drawn now, {id, instance} each; window.weft.finished is the time at which the last of
 * them was drawn first, and <html data-finished="1"> says that all are.
 */
(function () {
    'use strict';
    const weft = window.weft;
    const element = weft.element;
    const FILTER_FROM = 21;      // runs from which on a text chooses among them
    const PRINTED_ROWS = 64;     // rows of tables that are printed though they are closed
    const PRINT_WIDTH = 680;
    const SYMBOLS = { good: '\u2714', plain: '\u2022', doubt: '?', bad: '\u2716' };
    const WORDS = { good: 'good', plain: '', doubt: 'doubtful', bad: 'bad' };
    let now = null;
    let unique = 0;
    let waiting = 0; // charts that are not drawn yet
    let shownFigures = [];
    weft.charts = [];

    function labelled(text, control) {
        control.id = 'control-' + ++unique;
        return element('div', { class: 'control' }, element('label', { for: control.id }, text), control);
    }

    function select(texts, chosen, changed) {
        const control = element('select');
        texts.forEach((text, i) => control.append(element('option', { value: String(i) }, text)));
        control.value = String(chosen);
        control.addEventListener('change', () => changed(Number(control.value)));
        return control;
    }

    weft.verdict = function (lines) {
        const list = element('ul', { class: 'verdict' });
        for (const { level, text } of lines)
            list.append(element('li', { class: level in SYMBOLS ? level : 'plain' }, text));
        decorate(list);
        return list;
    };

    // What a colour says, a sign and a word say as well.
    function decorate(list) {
        for (const item of list.children) {
            const level = Object.keys(SYMBOLS).find(name => item.classList.contains(name)) || 'plain';
            const word = WORDS[level] ? element('span', { class: 'word' }, WORDS[level] + ': ') : '';
            const text = element('span', { class: 'text' }, word, ...item.childNodes);
            item.replaceChildren(element('span', { class: 'sign', 'aria-hidden': 'true' }, SYMBOLS[level]), text);
        }
    }

    /* A figure on the page */

    function chartDrawn() {
        if (--waiting > 0)
            return;
        weft.finished = performance.now();
        document.documentElement.dataset.finished = '1';
    }

    class Shown {
        constructor(raw) {
            this.figure = weft.figure(raw);
            const figure = this.figure;
            this.view = {
                choice: figure.selects.map(() => 0), value: figure.values[0] || null, rows: [],
                hidden: new Set(), legendAt: 0, width: 0, form: figure.kind === 'heat' ? 'matrix' : 'rows'
            };
            this.draws = weft.canDraw(figure) && typeof window.echarts === 'object';
            this.heading = 'figure-' + ++unique;
            this.element = element('section', { class: 'figure ' + figure.kind, 'aria-labelledby': this.heading },
                element('h3', { id: this.heading }, figure.title));
            if (figure.note)
                this.element.append(element('p', { class: 'note' }, figure.note));
            this.addControls();
            if (figure.svg)
                this.element.append(element('img', { alt: figure.title, src: 'data:image/svg+xml,' + encodeURIComponent(figure.svg) }));
            if (this.draws) {
                this.place = element('div', { class: 'chart', role: 'img' });
                this.element.append(this.place);
            }
            this.remarks = element('div', { 'aria-live': 'polite' });
            this.element.append(this.remarks);
            if (figure.rows > 0)
                this.addTable();
            this.choose();
        }

        addControls() {
            const figure = this.figure, controls = element('div', { class: 'controls' });
            figure.selects.forEach((column, i) => controls.append(labelled(column.name,
                select(column.labels, this.view.choice[i], chosen => {
                    this.view.choice[i] = chosen;
                    this.choose();
                }))));
            if (figure.values.length > 1)
                controls.append(labelled('value', select(figure.values.map(column => column.heading), 0, chosen => {
                    this.view.value = figure.values[chosen];
                    this.choose();
                })));
            if (controls.firstChild)
                this.element.append(controls);
        }

        addTable() {
            this.table = element('div');
            this.details = element('details', {}, element('summary', {}, 'The values as a table'));
            if (this.figure.kind === 'heat')
                this.details.append(labelled('table as', select(['matrix', 'rows, with all columns'], 0, chosen => {
                    this.view.form = chosen === 0 ? 'matrix' : 'rows';
                    this.fillTable();
                })));
            this.details.append(this.table);
            this.details.addEventListener('toggle', () => this.fillTable());
            this.element.append(this.details);
            if (!this.draws)
                this.details.open = true;
        }

        fillTable() {
            if (this.details && this.details.open)
                this.table.replaceChildren(weft.table(this.figure, this.view));
            else if (this.table)
                this.table.replaceChildren();
        }

        choose() {
            this.view.rows = this.figure.rowsOf(this.view.choice);
            if (this.figure.kind === 'heat') {
                this.view.across = this.figure.present(this.figure.x, this.view.rows);
                this.view.down = this.figure.present(this.figure.y, this.view.rows);
            }
            const marks = weft.hover.marks(this.figure, this.view);
            this.remarks.replaceChildren(...this.notDrawn(), ...(marks ? [marks] : []));
            this.fillTable();
            if (this.instance && this.figure.kind === 'heat') {
                this.measure(this.view.width);
                this.instance.resize();
            }
            this.draw();
        }

        // A logarithm has no place for zero.
        notDrawn() {
            const figure = this.figure, y = figure.y;
            if (this.view.rows.length === 0 && figure.rows > 0)
                return [element('p', {}, 'No values for this choice.')];
            const numbers = figure.kind === 'heat' ? this.view.value : y;
            if (this.draws && numbers.isNumber && this.view.rows.every(row => Number.isNaN(numbers.numbers[row])))
                return [element('p', {}, 'None of these values is known.')];
            if (!this.draws || !y || !y.isNumber || figure.scale.y !== 'log')
                return [];
            const count = this.view.rows.filter(row => y.numbers[row] <= 0).length;
            return count === 0 ? [] :
                [element('p', { class: 'note' }, count + ' values of zero or less have no place on this scale: see the table.')];
        }

        draw() {
            if (!this.instance)
                return;
            this.place.setAttribute('aria-label', weft.hover.summary(this.figure, this.view));
            this.instance.setOption(weft.chart(this.figure, this.view, now), { notMerge: true });
        }

        // The first drawing. The chart has its size from the page, and follows it.
        start() {
            if (!this.draws)
                return;
            this.measure(this.place.clientWidth);
            this.instance = window.echarts.init(this.place, null, { renderer: 'canvas' });
            weft.charts.push({ id: this.figure.id, instance: this.instance });
            const drawn = () => {
                this.instance.off('finished', drawn);
                chartDrawn();
            };
            this.instance.on('finished', drawn);
            this.instance.on('legendselectchanged', event => {
                this.view.hidden = new Set(Object.keys(event.selected).filter(name => !event.selected[name]));
                this.draw();
            });
            this.instance.on('legendscroll', event => {
                this.view.legendAt = event.scrollDataIndex;
            });
            this.draw();
            this.follow = new ResizeObserver(() => this.resize(this.place.clientWidth));
            this.follow.observe(this.place);
        }

        measure(width) {
            this.view.width = Math.max(200, width);
            this.place.style.height = weft.chartHeight(this.figure, this.view) + 'px';
        }

        resize(width) {
            if (!this.instance || Math.abs(width - this.view.width) < 1 || width < 10)
                return;
            this.measure(width);
            this.instance.resize({ width: Math.floor(this.view.width) });
            this.draw();
        }

        end() {
            if (!this.instance)
                return;
            this.follow.disconnect();
            weft.charts = weft.charts.filter(chart => chart.instance !== this.instance);
            this.instance.dispose();
            this.instance = null;
        }
    }

    // One chart after the other, so that the page answers in between.
    function drawAll(list) {
        delete document.documentElement.dataset.finished;
        const left = list.filter(shown => shown.draws);
        waiting = left.length + 1;
        (function next() {
            const shown = left.shift();
            if (!shown)
                return chartDrawn();
            if (shownFigures.includes(shown))
                shown.start();
            setTimeout(next, 0);
        })();
    }

    // Adds figures to a place; draws nothing yet.
    function add(raws, place) {
        const list = raws.map(raw => new Shown(raw));
        place.append(...list.map(shown => shown.element));
        shownFigures.push(...list);
        return list;
    }

    /* Runs */

    function runName(run, i) {
        return run.name || 'run ' + (i + 1);
    }

    function runPart(data, overview) {
        const place = element('div', { class: 'run' });
        let list = [];
        function show(i, first) {
            const run = data.runs[i];
            for (const shown of list)
                shown.end();
            shownFigures = shownFigures.filter(shown => !list.includes(shown));
            const figures = element('div', { class: 'figures' });
            place.replaceChildren(element('h2', {}, data.runs.length > 1 && run.title || runName(run, i)));
            if (data.runs.length > 1 && run.title)
                place.append(element('p', { class: 'note' }, runName(run, i)));
            if (data.runs.length > 1 && run.verdict && run.verdict.length)
                place.append(weft.verdict(run.verdict));
            place.append(figures);
            list = add(run.figures || [], figures);
            drawAll(first ? overview.concat(list) : list);
        }
        return { place, show };
    }

    function chooser(runs, show) {
        const control = select([], 0, show);
        const fill = wanted => {
            control.replaceChildren();
            runs.forEach((run, i) => {
                const text = runName(run, i) + (run.title ? ' \u2013 ' + run.title : '');
                if (text.toLowerCase().includes(wanted))
                    control.append(element('option', { value: String(i) }, text));
            });
            control.disabled = control.options.length === 0;
        };
        fill('');
        control.value = '0';
        const part = element('div', { class: 'chooser', role: 'group', 'aria-label': 'Choice of the run' });
        if (runs.length >= FILTER_FROM) {
            const filter = element('input', { type: 'search', autocomplete: 'off' });
            const said = element('span', { 'aria-live': 'polite', class: 'note' });
            let shown = 0;
            filter.addEventListener('input', () => {
                shown = control.value === '' ? shown : Number(control.value);
                fill(filter.value.trim().toLowerCase());
                said.textContent = control.options.length + ' of ' + runs.length;
                const kept = Array.from(control.options).some(option => option.value === String(shown));
                control.value = kept ? String(shown) : control.options.length ? control.options[0].value : '';
                if (!kept && control.value !== '')
                    show(Number(control.value));
            });
            part.append(labelled('Find a run', filter), said);
        }
        part.append(labelled('Run', control));
        return part;
    }

    /* The whole */

    function redraw() {
        now = weft.look.theme();
        for (const shown of shownFigures)
            shown.draw();
    }

    function whenPrinted() {
        const opened = [];
        window.addEventListener('beforeprint', () => {
            document.documentElement.dataset.print = '1';
            redraw();
            for (const shown of shownFigures) {
                shown.resize(PRINT_WIDTH);
                if (shown.details && !shown.details.open && shown.view.rows.length <= PRINTED_ROWS) {
                    shown.details.open = true;
                    shown.fillTable();
                    opened.push(shown);
                }
            }
        });
        window.addEventListener('afterprint', () => {
            delete document.documentElement.dataset.print;
            for (const shown of opened.splice(0))
                shown.details.open = false;
            redraw();
            for (const shown of shownFigures)
                if (shown.place)
                    shown.resize(shown.place.clientWidth);
        });
        window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
    }

    function build() {
        const data = weft.read();
        const main = document.getElementById('figures');
        now = weft.look.theme();
        document.querySelectorAll('ul.verdict').forEach(decorate);
        if (typeof window.echarts !== 'object')
            main.append(element('p', { class: 'without' },
                'The charts were left out: the weft that wrote this was built without npm, from which it has the library that ' +
                'draws them. The tables have all values.'));
        let overview = [];
        if (data.figures && data.figures.length) {
            const figures = element('div', { class: 'figures' });
            if (data.runs && data.runs.length > 1)
                main.append(element('h2', {}, 'All runs'));
            main.append(figures);
            overview = add(data.figures, figures);
        }
        whenPrinted();
        if (!data.runs || data.runs.length === 0)
            return drawAll(overview);
        const { place, show } = runPart(data, overview);
        if (data.runs.length > 1)
            main.append(chooser(data.runs, i => show(i, false)));
        main.append(place);
        show(0, true);
    }

    build();
})();
