// browser.js: a Chromium without a window, led over its own protocol: a page of it, and what goes wrong there.
//
//     const browser = await Browser.start();
//     const page = await browser.page();
//     await page.open('file:///...'); await page.evaluate('1 + 1'); page.complaints
//     await browser.stop();
//
// Requests and answers are JSON texts, each ended by a zero byte, on the browser's descriptors 3 and 4. Every wait has an
// end, and the browser's profile is gone with it.
'use strict';
const { spawn, spawnSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const ANSWER_MS = 120000;

function find() {
    for (const name of [process.env.WEFT_TEST_CHROMIUM, 'chromium', 'chromium-browser', 'google-chrome', 'headless_shell'])
        if (name && spawnSync('sh', ['-c', 'command -v "$0"', name]).status === 0)
            return name;
    return null;
}

const pause = ms => new Promise(done => setTimeout(done, ms));

class Browser {
    // Owner: the caller, who calls stop().
    static async start() {
        const browser = new Browser();
        const root = process.getuid && process.getuid() === 0;
        browser.profile = fs.mkdtempSync(path.join(os.tmpdir(), 'weft-browser-'));
        browser.process = spawn(find(), ['--headless', ...(root ? ['--no-sandbox'] : []), '--disable-gpu', '--disable-dev-shm-usage',
            '--no-first-run', '--disable-extensions', '--disable-background-networking', '--hide-scrollbars',
            '--force-color-profile=srgb', `--user-data-dir=${browser.profile}`, '--remote-debugging-pipe', 'about:blank'],
        { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true });
        browser.ended = new Promise(done => browser.process.once('exit', done).once('error', done));
        browser.process.once('exit', () => browser.fail(new Error('the browser has ended')));
        browser.process.stdio[3].on('error', () => {});
        // It is in a process group of its own, which a signal to this one does not reach.
        for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'])
            process.once(signal, () => {
                browser.kill();
                browser.ended.then(() => browser.forget()).finally(() => process.exit(1));
            });
        let rest = '';
        browser.process.stdio[4].setEncoding('utf8').on('data', text => {
            const messages = (rest + text).split('\0');
            rest = messages.pop();
            messages.forEach(message => browser.take(JSON.parse(message)));
        });
        await browser.send('Browser.getVersion');
        return browser;
    }

    constructor() {
        this.next = 0;
        this.waiting = new Map(); // of requests: {done, failed, timer}
        this.pages = new Map();   // by their session
    }

    send(method, params = {}, session = undefined) {
        const id = ++this.next;
        return new Promise((done, failed) => {
            const timer = setTimeout(() => {
                this.waiting.delete(id);
                failed(new Error(`no answer to ${method} within ${ANSWER_MS / 1000} s`));
            }, ANSWER_MS);
            this.waiting.set(id, { done, failed, timer });
            this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId: session }) + '\0');
        });
    }

    take(message) {
        const request = this.waiting.get(message.id);
        if (request) {
            this.waiting.delete(message.id);
            clearTimeout(request.timer);
            if (message.error)
                request.failed(new Error(message.error.message));
            else
                request.done(message.result);
        } else if (this.pages.has(message.sessionId)) {
            this.pages.get(message.sessionId).event(message.method, message.params);
        }
    }

    fail(error) {
        for (const { failed, timer } of this.waiting.values()) {
            clearTimeout(timer);
            failed(error);
        }
        this.waiting.clear();
    }

    async page() {
        const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
        const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
        const page = new Page(this, sessionId, targetId);
        this.pages.set(sessionId, page);
        for (const domain of ['Page', 'Runtime', 'Log', 'Network'])
            await page.send(`${domain}.enable`);
        return page;
    }

    // The browser is asked to end; one that does not is killed, with the processes that it has started.
    async stop() {
        const late = setTimeout(() => this.kill(), 3000);
        this.send('Browser.close').catch(() => {});
        await this.ended;
        clearTimeout(late);
        this.fail(new Error('the browser has ended'));
        this.forget();
    }

    forget() {
        fs.rmSync(this.profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    }

    kill() {
        try {
            process.kill(-this.process.pid, 'SIGKILL'); // its own process group
        } catch (error) {
            if (error.code !== 'ESRCH')
                throw error;
        }
    }
}

class Page {
    constructor(browser, session, target) {
        this.browser = browser;
        this.session = session;
        this.target = target;
        this.complaints = []; // errors of the console, exceptions, refusals of the policy, requests to the network
    }

    send(method, params) {
        return this.browser.send(method, params, this.session);
    }

    event(method, params) {
        if (method === 'Runtime.exceptionThrown') {
            const details = params.exceptionDetails;
            this.complaints.push(`exception: ${(details.exception && details.exception.description) || details.text}`);
        } else if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(params.type)) {
            this.complaints.push(`console: ${params.args.map(arg => arg.value || arg.description).join(' ')}`);
        } else if (method === 'Log.entryAdded' && ['error', 'warning'].includes(params.entry.level)) {
            this.complaints.push(`log: ${params.entry.text}`);
        } else if (method === 'Network.requestWillBeSent' && !/^(file|data|about):/.test(params.request.url)) {
            this.complaints.push(`request: ${params.request.url}`);
        } else if (method === 'Page.javascriptDialogOpening') {
            this.complaints.push(`dialog: ${params.message}`);
            this.send('Page.handleJavaScriptDialog', { accept: true }).catch(() => {});
        }
    }

    async evaluate(expression) {
        const { result, exceptionDetails } = await this.send('Runtime.evaluate',
            { expression, returnByValue: true, awaitPromise: true });
        if (exceptionDetails)
            throw new Error((exceptionDetails.exception && exceptionDetails.exception.description) || exceptionDetails.text);
        return result.value;
    }

    // Waits until the expression is true.
    async until(expression, what, ms = 120000) {
        const end = Date.now() + ms;
        while (!await this.evaluate(expression)) {
            if (Date.now() > end)
                throw new Error(`after ${ms / 1000} s still not: ${what}`);
            await pause(25);
        }
    }

    // Opens the page, and waits until its charts are drawn.
    async open(url) {
        await this.send('Page.navigate', { url });
        await this.until('document.readyState === "complete" && location.href !== "about:blank"', 'the page is loaded');
        await this.until('document.documentElement.dataset.finished === "1"', 'all charts are drawn');
    }

    async look({ width = 1280, height = 900, dark = false }) {
        await this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
        await this.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] });
        // Two frames: sizes are followed in the first, and painted in the second.
        await this.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))');
    }

    async moveMouse(x, y) {
        await this.send('Input.dispatchMouseEvent', { type: 'mouseMoved', x, y });
        await pause(60);
    }

    async screenshot(file) {
        const { cssContentSize } = await this.send('Page.getLayoutMetrics');
        const { data } = await this.send('Page.captureScreenshot', { format: 'png', captureBeyondViewport: true,
            clip: { x: 0, y: 0, width: cssContentSize.width, height: Math.min(8000, cssContentSize.height), scale: 1 } });
        fs.writeFileSync(file, Buffer.from(data, 'base64'));
    }

    async pdf(file) {
        const { data } = await this.send('Page.printToPDF', { printBackground: false });
        fs.writeFileSync(file, Buffer.from(data, 'base64'));
    }

    async close() {
        this.browser.pages.delete(this.session);
        await this.browser.send('Target.closeTarget', { targetId: this.target });
    }
}

module.exports = { Browser, find, pause };
