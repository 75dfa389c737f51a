/*
 * look.js: colours, axes and symbols of the charts.
 *
 * Logarithmic axes are linear ones whose values are logarithms, so that their ticks can be 1K, 64K, 1M or 1, 2, 5.
 */
(function () {
    'use strict';
    const weft = window.weft;

    // Told apart also by those who see few colours; and each series has another dash and symbol beside.
    const SERIES_LIGHT = ['#0072b2', '#c65102', '#00825e', '#b2559b', '#9c6a00', '#3c7fd0', '#444444'];
    const SERIES_DARK = ['#56b4e9', '#ff9e4a', '#3ecf9e', '#e79ac9', '#f0d34a', '#8fb3ff', '#d0d0d0'];
    const DASHES = ['solid', 'dashed', 'dotted', [10, 3, 2, 3]];
    const SYMBOLS = ['circle', 'rect', 'triangle', 'emptyCircle', 'emptyRect', 'emptyTriangle', 'roundRect', 'arrow'];

    // From dark to light in even steps of lightness, which those who see few colours and printers keep.
    const RAMP = ['#0b1f4b', '#27406f', '#4b5a75', '#6b757c', '#8b907a', '#b0ac6f', '#d6ca5b', '#ffea46'];

    function channels(colour) {
        return [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
    }

    // The colour of a share of the ramp, from 0 to 1: is dark or light ink read on it?
    function inkOn(share) {
        const at = Math.max(0, Math.min(1, share)) * (RAMP.length - 1);
        const low = channels(RAMP[Math.floor(at)]), high = channels(RAMP[Math.ceil(at)]);
        const part = at - Math.floor(at);
        const [r, g, b] = low.map((value, i) => value + (high[i] - value) * part);
        return 0.299 * r + 0.587 * g + 0.114 * b > 125 ? '#000000' : '#ffffff';
    }

    // The colours of the page as they are now. While it is printed it is light.
    function theme() {
        const style = getComputedStyle(document.documentElement);
        const of = name => style.getPropertyValue(name).trim();
        const dark = of('--dark') === '1';
        return {
            dark, ink: of('--ink'), soft: of('--soft'), line: of('--line'), ground: of('--ground'), card: of('--card'),
            font: style.fontFamily, series: dark ? SERIES_DARK : SERIES_LIGHT
        };
    }

    function seriesLook(now, i) {
        return {
            colour: now.series[i % now.series.length],
            dash: DASHES[i % DASHES.length],
            symbol: SYMBOLS[i % SYMBOLS.length]
        };
    }

    /* Axes */

    // As many of the steps as fit.
    function stepOf(span, most, steps) {
        return steps.find(step => span / step <= most) || steps[steps.length - 1];
    }

    function multiples(from, to, step) {
        const list = [];
        for (let at = Math.ceil(from / step - 1e-9) * step; at <= to + 1e-9; at += step)
            list.push(at);
        return list;
    }

    function decimalTicks(low, high, most) {
        const span = high - low;
        const digits = span * 4 <= most ? [1, 2, 3, 5, 7] : span * 3 <= most ? [1, 2, 5] : [1];
        const every = digits.length > 1 ? 1 : stepOf(span, most, [1, 2, 3, 5, 10, 20]);
        const ticks = [];
        for (let decade = Math.floor(low); decade <= Math.ceil(high); decade++)
            if (decade % every === 0)
                for (const digit of digits)
                    ticks.push(decade + Math.log10(digit));
        return ticks;
    }

    function extent(values) {
        let low = Infinity, high = -Infinity;
        for (const value of values) {
            if (value < low)
                low = value;
            if (value > high)
                high = value;
        }
        return low <= high ? [low, high] : null;
    }

    function baseAxis(column, now, vertical) {
        const title = column.heading;
        return {
            name: title.length > 40 ? title.slice(0, 39) + '\u2026' : title,
            nameLocation: vertical ? 'end' : 'middle',
            nameGap: vertical ? 12 : 28,
            nameTextStyle: { color: now.soft, align: vertical ? 'left' : 'center', fontSize: 12 },
            axisLine: { show: !vertical, onZero: false, lineStyle: { color: now.soft } },
            axisTick: { show: !vertical, lineStyle: { color: now.soft } },
            axisLabel: { color: now.soft, hideOverlap: true, fontSize: 12 },
            splitLine: { show: vertical, lineStyle: { color: now.line } },
            axisPointer: { label: { show: false }, lineStyle: { color: now.soft, type: 'solid' } }
        };
    }

    function shorten(text, most) {
        return text.length > most ? text.slice(0, most - 1) + '\u2026' : text;
    }

    // By label: those that these rows have, in the order of the labels, or of the numbers.
    function labelAxis(column, rows, now, vertical) {
        const codeOf = row => column.isNumber ? column.numbers[row] : column.codes[row];
        const seen = new Set();
        for (const row of rows)
            seen.add(codeOf(row));
        const codes = Array.from(seen).filter(code => !Number.isNaN(code)).sort((a, b) => a - b);
        const place = new Map(codes.map((code, i) => [code, i]));
        const texts = codes.map(code => column.isNumber ? weft.format.withUnit(code, column.unit) : column.labels[code]);
        const axis = Object.assign(baseAxis(column, now, vertical), { type: 'category', data: texts.map((_, i) => i) });
        axis.axisLabel.formatter = value => shorten(texts[value] || '', 24);
        axis.axisTick.alignWithLabel = true;
        axis.splitLine.show = false;
        return { axis, count: codes.length, longest: texts.reduce((most, text) => Math.max(most, text.length), 0),
            textOf: at => texts[at] || '', at: row => place.has(codeOf(row)) ? place.get(codeOf(row)) : null, of: value => value };
    }

    function logAxis(column, values, now, vertical, most) {
        const two = column.unit === 'bytes';
        const log = two ? Math.log2 : Math.log10;
        const of = value => value > 0 ? log(value) : null;
        let [low, high] = extent(Array.from(values).filter(value => value > 0).map(log)) || [0, 1];
        let ticks;
        if (two) {
            const one = low === high ? 1 : 0; // a single value stands in the middle
            low = Math.floor(low) - one;
            high = Math.ceil(high) + one;
            const step = stepOf(high - low, most, [1, 2, 3, 5, 10]);
            ticks = multiples(low, high, step === 3 ? 2 : step);
        } else {
            const pad = Math.max(0.02, (high - low) * 0.05);
            low -= pad;
            high += pad;
            ticks = decimalTicks(low, high, most).filter(tick => tick >= low && tick <= high);
            if (ticks.length < 2)
                ticks = [low, (low + high) / 2, high].map(tick => log(Number((10 ** tick).toPrecision(2))));
            ticks = ticks.filter(tick => tick >= low && tick <= high);
        }
        const axis = Object.assign(baseAxis(column, now, vertical), { type: 'value', min: low, max: high });
        axis.axisLabel.customValues = axis.axisTick.customValues = axis.splitLine.customValues = ticks;
        axis.axisLabel.formatter = value =>
            weft.format.bare(two ? Number((2 ** value).toPrecision(9)) : Number((10 ** value).toPrecision(3)), column.unit);
        axis.startValue = low;
        return { axis, count: 0, longest: 5, at: row => of(column.numbers[row]), of };
    }

    function linearAxis(column, values, now, vertical, zero) {
        const axis = Object.assign(baseAxis(column, now, vertical), { type: 'value' });
        const range = extent(values);
        // From zero, unless all values are far from it and near each other.
        axis.scale = !zero && (!vertical || (range !== null && range[0] > 0 && range[1] - range[0] < 0.3 * range[1]));
        axis.axisLabel.formatter = value => weft.format.bare(Number(value.toPrecision(6)), column.unit);
        return { axis, count: 0, longest: 6, at: row => Number.isNaN(column.numbers[row]) ? null : column.numbers[row],
            of: value => Number.isNaN(value) ? null : value };
    }

    // {axis: an axis of ECharts, at: where a row is on it, or null, of: where a number is}
    // wish: {scale, vertical, values: all numbers that it must hold, most: ticks that have room, zero: must it hold 0?}
    function axis(column, rows, now, wish) {
        if (!column.isNumber || wish.scale === 'labels')
            return labelAxis(column, rows, now, wish.vertical);
        if (wish.scale === 'log')
            return logAxis(column, wish.values, now, wish.vertical, wish.most);
        return linearAxis(column, wish.values, now, wish.vertical, wish.zero);
    }

    weft.look = { theme, seriesLook, inkOn, axis, baseAxis, extent, shorten, RAMP };
})();
