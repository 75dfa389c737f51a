/*
 * charts.js: what ECharts is to draw of a figure: weft.chart(figure, view, theme) by its kind.
 *
 * view: {choice, rows, value, hidden: names of series that the reader has switched off, legendAt: the first name of a
 * legend that is scrolled, width: pixels}
 * Every item of data ends with its row, by which a hover finds the rest. Markup is nowhere: hovers are elements, and
 * all else is painted.
 */
(function () {
    'use strict';
    const SPAN_LEAST = 0.1; // of the largest value, of the colours of a matrix
    const weft = window.weft;
    const look = weft.look;
    const SYMBOLS_MOST = 600;   // points of lines that have a symbol each
    const LARGE = 4000;         // points that are painted without styles of their own
    const TOGETHER_MOST = 12;   // lines whose values are told together

    function tooltip(now, trigger, formatter) {
        return {
            trigger, formatter, confine: true, transitionDuration: 0, showDelay: 0, backgroundColor: now.card, borderColor: now.soft,
            padding: [6, 9], textStyle: { color: now.ink, fontSize: 13, fontFamily: now.font },
            extraCssText: 'max-width:min(32rem,92%);white-space:normal;border-radius:4px;'
        };
    }

    function base(now) {
        return { animation: false, textStyle: { fontFamily: now.font, color: now.ink }, backgroundColor: 'transparent' };
    }

    function legend(now, kind, names, view) {
        const selected = {};
        for (const name of view.hidden)
            selected[name] = false;
        return {
            show: names.length > 1, type: 'scroll', top: 0, left: 0, right: 0, data: names, selected,
            scrollDataIndex: view.legendAt, itemWidth: kind === 'lines' ? 34 : 18,
            textStyle: { color: now.ink, fontSize: 12 }, inactiveColor: now.line, pageTextStyle: { color: now.ink },
            pageIconColor: now.ink, pageIconInactiveColor: now.line, formatter: name => look.shorten(name, 48)
        };
    }

    function grid(top, bottom, right) {
        return { left: 6, right: right || 22, top, bottom, outerBoundsMode: 'same', outerBoundsContain: 'axisLabel' };
    }

    // The most letters of a label, and whether labels stand side by side, are turned, or stand upright.
    // Returns {letters, turned: degrees, pixels: what they take below or above their axis, count, pitch}
    function labelsFit(count, longest, width) {
        const letters = Math.min(width < 520 ? 14 : 24, longest), pitch = (width - 100) / count;
        const fit = (turned, pixels) => ({ letters, turned, pixels, count, pitch });
        if (count === 0 || letters <= 3 || letters * 7 + 12 <= pitch)
            return fit(0, 18);
        return width < 520 || pitch < 24 ? fit(90, 10 + letters * 6.7) : fit(45, 14 + letters * 5);
    }

    function longestOf(labels) {
        return labels.reduce((most, text) => Math.max(most, text.length), 0);
    }

    // Labels upright, or one below the other, that are nearer than a line of text: each second, fourth, ... stays.
    function thin(axis, count, pixels) {
        let every = 1;
        while (every * pixels < 14 && every < count)
            every *= 2;
        axis.axisLabel.interval = every - 1;
        axis.axisLabel.hideOverlap = false;
    }

    function turnLabels(axis, fit, textOf) {
        if (fit.turned === 90)
            thin(axis, fit.count, fit.pitch);
        axis.axisLabel.rotate = fit.turned;
        axis.axisLabel.formatter = at => look.shorten(textOf(at), fit.letters);
        axis.nameGap = fit.pixels + 10;
    }

    /* Heat maps */

    // Cells are nearly square.
    function plotHeight(view) {
        const cell = Math.min(52, (view.width - 90) / view.across.labels.length);
        return Math.max(120, Math.min(900, cell * view.down.labels.length));
    }

    function heat(figure, view, now) {
        const across = view.across.labels, down = view.down.labels, value = view.value;
        const range = look.extent(Array.from(view.rows, row => value.numbers[row]).filter(v => !Number.isNaN(v))) || [0, 1];
        // What is nearly equal looks so.
        range[0] = Math.min(range[0], range[1] - SPAN_LEAST * Math.abs(range[1]));
        const span = range[1] - range[0];
        const cell = (view.width - 90) / across.length;
        const roomy = cell >= 40 && across.length * down.length <= 400;
        const data = [], marked = [];
        for (const row of view.rows) {
            const x = view.across.at[figure.x.codes[row]], y = view.down.at[figure.y.codes[row]], v = value.numbers[row];
            if (Number.isNaN(v))
                continue;
            const item = [x, y, v, row];
            data.push(roomy ? { value: item, label: { color: look.inkOn(span > 0 ? (v - range[0]) / span : 0.5) } } : item);
            if (figure.markOf(row))
                marked.push([x, y, row]);
        }
        const axisOf = (column, labels, vertical) => {
            const axis = Object.assign(look.baseAxis(column, now, vertical), { type: 'category', data: labels.map((_, i) => i) });
            axis.axisTick.show = axis.axisLine.show = axis.splitLine.show = false;
            return axis;
        };
        const x = axisOf(figure.x, across, false), y = axisOf(figure.y, down, true);
        turnLabels(x, labelsFit(across.length, longestOf(across), view.width), at => across[at] || '');
        Object.assign(x, { position: 'top', name: figure.y.heading + ' \u2193   ' + figure.x.heading + ' \u2192' });
        y.axisLabel.formatter = at => look.shorten(down[at] || '', view.width < 520 ? 10 : 24);
        Object.assign(y, { inverse: true, name: '' });
        thin(y, down.length, plotHeight(view) / down.length);
        const option = base(now);
        return Object.assign(option, {
            grid: grid(28, 48, 10), xAxis: x, yAxis: y,
            tooltip: tooltip(now, 'item', item => weft.hover.one(figure, item.value[3], value)),
            visualMap: {
                type: 'continuous', seriesIndex: 0, dimension: 2, min: range[0], max: span > 0 ? range[1] : range[0] + 1e-9,
                inRange: { color: look.RAMP }, orient: 'horizontal', left: 'center', bottom: 4, itemWidth: 14,
                itemHeight: Math.min(260, view.width * 0.4), calculable: false, hoverLink: false,
                text: [weft.format.withUnit(range[1], value.unit), weft.format.withUnit(range[0], value.unit)],
                textStyle: { color: now.ink, fontSize: 12 }
            },
            series: [{
                id: 'cells', type: 'heatmap', data, progressive: 0, encode: { x: 0, y: 1, value: 2 },
                itemStyle: { borderColor: now.card, borderWidth: cell > 12 ? 1 : 0 },
                label: { show: roomy, fontSize: 12, formatter: item => weft.format.bare(Number(item.value[2].toPrecision(3)), value.unit) },
                emphasis: { itemStyle: { borderColor: now.ink, borderWidth: 2 } }
            }, {
                // Seen on every colour: a white sign with a black edge; of cells with a text, in their corner.
                id: 'marks', type: 'scatter', data: marked, silent: true, symbol: 'diamond', progressive: 0, z: 3,
                symbolSize: roomy ? 11 : Math.max(3.5, Math.min(12, cell * 0.55)),
                symbolOffset: roomy ? [Math.min(34, cell * 0.38), -12] : [0, 0],
                itemStyle: { color: '#ffffff', borderColor: '#000000', borderWidth: cell > 10 ? 1.5 : 0.8 }
            }]
        });
    }

    /* Lines, points and bars */

    // [where, low, high] of a row on the axes; null where any of it is not known. Zero is at the foot of a logarithm.
    function spreadOf(figure, row, x, y) {
        const at = x.at(row), low = figure.low.numbers[row], high = y.of(figure.high.numbers[row]);
        if (at === null || y.at(row) === null || high === null || Number.isNaN(low))
            return null;
        return [at, y.of(low) === null ? y.axis.min : y.of(low), high];
    }

    // The spread of a group as a surface, with gaps where it is not known.
    function band(figure, group, id, x, y, colour) {
        const pieces = [[]];
        for (const row of group.rows) {
            const item = spreadOf(figure, row, x, y), piece = pieces[pieces.length - 1];
            if (item)
                piece.push(item);
            else if (piece.length)
                pieces.push([]);
        }
        const polygon = (api, piece) => ({
            type: 'polygon', silent: true, style: { fill: colour, opacity: 0.16 }, shape: {
                points: piece.map(item => api.coord([item[0], item[2]])).concat(piece.reverse().map(item => api.coord([item[0], item[1]])))
            }
        });
        return {
            id, type: 'custom', name: group.name, data: [].concat(...pieces), silent: true, z: 1, clip: true, tooltip: { show: false },
            encode: { x: 0, y: [1, 2] },
            renderItem: (params, api) => params.dataIndexInside !== 0 ? null :
                { type: 'group', silent: true, children: pieces.map(piece => polygon(api, piece.slice())) }
        };
    }

    // The spread of each point, or bar, as a line with two ends. bars: {at, count} of the bars that are shown, or null.
    function whiskers(figure, group, id, x, y, now, bars) {
        const data = group.rows.map(row => spreadOf(figure, row, x, y)).filter(item => item !== null);
        return {
            id, type: 'custom', name: group.name, data, silent: true, z: 4, clip: true, tooltip: { show: false },
            encode: { x: 0, y: [1, 2] },
            renderItem: (params, api) => {
                const low = api.coord([api.value(0), api.value(1)]), high = api.coord([api.value(0), api.value(2)]);
                const place = bars && api.barLayout(Object.assign({ count: bars.count }, BAR_GAPS))[bars.at];
                const centre = low[0] + (place ? place.offsetCenter : 0), half = place ? Math.min(5, place.width / 3) : 3;
                const piece = (x1, y1, x2, y2) =>
                    ({ type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: now.ink, lineWidth: 1, opacity: 0.75 } });
                return { type: 'group', silent: true, children: [
                    piece(centre, low[1], centre, high[1]),
                    piece(centre - half, low[1], centre + half, low[1]),
                    piece(centre - half, high[1], centre + half, high[1])
                ] };
            }
        };
    }

    const BAR_GAPS = { barGap: '8%', barCategoryGap: '28%', barMaxWidth: 56 };

    function pointsOf(group, x, y) {
        const data = [];
        for (const row of group.rows) {
            const at = x.at(row), value = y.at(row);
            if (at !== null)
                data.push([at, value, row]);
        }
        return data;
    }

    function lineSeries(figure, group, i, x, y, now, many) {
        const { colour, dash, symbol } = look.seriesLook(now, i);
        const data = pointsOf(group, x, y).sort((a, b) => a[0] - b[0]);
        return {
            id: 'line-' + i, type: 'line', name: group.name, data, symbol, symbolSize: 7, showSymbol: !many,
            sampling: data.length > 4000 ? 'lttb' : undefined, z: 2, connectNulls: false, color: colour,
            lineStyle: { color: colour, width: 2, type: dash }, itemStyle: { color: colour }, emphasis: { disabled: many }
        };
    }

    function pointSeries(group, i, x, y, now) {
        const { colour, symbol } = look.seriesLook(now, i);
        const data = pointsOf(group, x, y);
        return {
            id: 'points-' + i, type: 'scatter', name: group.name, data, symbol, z: 2,
            // Below 4 pixels each is a small square; above they are one path, which takes a browser minutes to fill.
            symbolSize: data.length > LARGE ? 3 : data.length > 1000 ? 5 : 8, large: data.length > LARGE, largeThreshold: LARGE,
            progressive: 0, color: colour,
            itemStyle: { color: colour, opacity: data.length > 1000 ? 0.6 : 0.9 }
        };
    }

    function barSeries(figure, group, i, x, y, now) {
        const { colour } = look.seriesLook(now, i);
        const data = pointsOf(group, x, y).map(item => !figure.markOf(item[2]) ? item : {
            value: item, itemStyle: { borderColor: now.ink, borderWidth: 1.5, borderType: 'dashed' },
            label: { show: true, position: 'top', formatter: weft.MARK, color: now.ink }
        });
        // Stripes tell bars of one legend apart where colours do not.
        const stripes = [null, { symbol: 'rect', dashArrayX: [1, 0], dashArrayY: [2, 5], rotation: -Math.PI / 4 },
            { symbol: 'circle', symbolSize: 0.7, dashArrayX: [[6, 6], [0, 6, 6, 0]], dashArrayY: [6, 0] },
            { symbol: 'rect', dashArrayX: [1, 0], dashArrayY: [2, 5], rotation: Math.PI / 4 }][i % 4];
        const decal = stripes && Object.assign({ color: now.dark ? 'rgba(0,0,0,.35)' : 'rgba(255,255,255,.45)' }, stripes);
        return Object.assign({ id: 'bar-' + i, type: 'bar', name: group.name, data, color: colour,
            itemStyle: { color: colour, decal: decal || { symbol: 'none' } } }, BAR_GAPS);
    }

    function markSeries(figure, groups, x, y, now) {
        const data = [];
        for (const group of groups)
            for (const row of group.rows)
                if (figure.markOf(row) && x.at(row) !== null && y.at(row) !== null)
                    data.push([x.at(row), y.at(row), row]);
        return {
            id: 'marks', type: 'scatter', data, silent: true, symbol: 'diamond', symbolSize: 15, z: 5, progressive: 0,
            tooltip: { show: false }, itemStyle: { color: 'transparent', borderColor: now.ink, borderWidth: 1.8 }
        };
    }

    function plane(figure, view, now) {
        const bars = figure.kind === 'bars', lines = figure.kind === 'lines';
        const groups = figure.groups(view.rows);
        const shown = groups.filter(group => !view.hidden.has(group.name));
        const spreads = figure.low !== null && figure.high !== null && figure.y.isNumber;
        const heights = [];
        for (const column of spreads ? [figure.y, figure.low, figure.high] : [figure.y])
            if (column.isNumber)
                for (const row of view.rows)
                    if (!Number.isNaN(column.numbers[row]))
                        heights.push(column.numbers[row]);
        const x = look.axis(figure.x, view.rows, now, { scale: bars ? 'labels' : figure.scale.x, vertical: false,
            values: figure.x.isNumber ? figure.x.numbers : [], most: Math.floor(view.width / 62), zero: false });
        const y = look.axis(figure.y, view.rows, now, { scale: figure.scale.y, vertical: true, values: heights, most: 9, zero: bars });
        const fit = labelsFit(x.count, x.longest, view.width);
        if (x.textOf)
            turnLabels(x.axis, fit, x.textOf);
        const series = [];
        const many = view.rows.length > SYMBOLS_MOST;
        groups.forEach((group, i) => {
            const at = shown.indexOf(group);
            series.push(lines ? lineSeries(figure, group, i, x, y, now, many) :
                bars ? barSeries(figure, group, i, x, y, now) : pointSeries(group, i, x, y, now));
            // Behind its line by its z, but after it here: a legend shows the first of a name.
            const surface = lines && group.rows.length > 1;
            if (spreads && surface)
                series.push(band(figure, { name: group.name, rows: group.rows.slice().sort((a, b) => x.at(a) - x.at(b)) },
                    'band-' + i, x, y, look.seriesLook(now, i).colour));
            if (spreads && !surface && at >= 0 && group.rows.length <= SYMBOLS_MOST)
                series.push(whiskers(figure, group, 'spread-' + i, x, y, now, bars ? { at, count: shown.length } : null));
        });
        if (!bars)
            series.push(markSeries(figure, shown, x, y, now));
        const together = lines && groups.length <= TOGETHER_MOST;
        const colourOf = id => look.seriesLook(now, Number(id.slice(5))).colour;
        const hover = together ? items => {
            const dots = items.filter(item => item.seriesType === 'line' && item.value)
                .map(item => ({ row: item.value[2], colour: colourOf(item.seriesId) }));
            return dots.length ? weft.hover.several(figure, dots) : '';
        } : item => item.value && item.seriesType !== 'custom' ? weft.hover.one(figure, item.value[2]) : '';
        return Object.assign(base(now), {
            legend: legend(now, figure.kind, groups.map(group => group.name), view),
            grid: grid(groups.length > 1 ? 62 : 34, 28), xAxis: x.axis, yAxis: y.axis,
            tooltip: tooltip(now, together ? 'axis' : 'item', hover), series
        });
    }

    weft.chart = (figure, view, now) => (figure.kind === 'heat' ? heat : plane)(figure, view, now);

    // Pixels from top to bottom for the pixels from left to right that the view has.
    weft.chartHeight = function (figure, view) {
        const labels = figure.kind === 'heat' ? view.across.labels : figure.x.isNumber ? [] : figure.x.labels;
        const above = labelsFit(labels.length, longestOf(labels), view.width).pixels;
        if (figure.kind !== 'heat')
            return Math.round(Math.max(280, Math.min(520, view.width * 0.5)) + above);
        return Math.round(plotHeight(view) + above + 76);
    };
    weft.canDraw = figure => ['lines', 'points', 'bars', 'heat'].includes(figure.kind) && figure.x !== null && figure.y !== null &&
        (figure.kind !== 'heat' || figure.values.length > 0);
})();
