// make_page.js KIND FILE PARTS: a report page of made-up data (sample_data.js), put together as `weft report` does it, from
// the folder PARTS that the program report_parts has filled. KIND may also be the name of a JSON file.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const samples = require('./sample_data.js');

const escaped = text => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
const hashed = text => `'sha256-${crypto.createHash('sha256').update(text).digest('base64')}'`;

function makePage(data, parts) {
    const read = name => fs.readFileSync(path.join(parts, name), 'utf8');
    const names = read('list').trim().split('\n').filter(name => name.endsWith('.js'));
    const scripts = names.map(read);
    const list = lines => `<ul class="verdict">${lines.map(line => `<li class="${line.level}">${escaped(line.text)}</li>`).join('')}</ul>`;
    const problems = data.problems.map(problem => ({ level: 'bad', text: `${problem.file}: ${problem.text}` }));
    return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src ${
    scripts.map(hashed).join(' ')}">
<title>${escaped(data.title)}</title><style>${read('report.css')}</style></head><body>
<header><h1>${escaped(data.title)}</h1><p class="when">${escaped(data.made)}</p></header>
<main>
<section id="verdict"><h2>Verdict</h2>${list(data.verdict)}</section>
${problems.length ? `<section id="problems"><h2>Problems</h2>${list(problems)}</section>` : ''}
<noscript><p>The tables and charts need JavaScript.</p></noscript>
<div id="figures"></div>
</main>
<script type="application/json" id="weft-data">${JSON.stringify(data).replace(/</g, '\\u003c')}</script>
${scripts.map(text => `<script>${text}</script>`).join('\n')}
</body></html>
`;
}

module.exports = { makePage };
if (require.main === module) {
    const [kind, file, parts] = process.argv.slice(2);
    if (!parts) {
        console.error('usage: make_page.js KIND FILE PARTS');
        process.exit(2);
    }
    const data = fs.existsSync(kind) ? JSON.parse(fs.readFileSync(kind, 'utf8')) : samples.report(kind);
    fs.writeFileSync(file, makePage(data, parts));
}
