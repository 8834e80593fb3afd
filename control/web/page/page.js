// The page of a stage or a coordinator: asks the port that it came from, and draws the answers. All
// texts of others (names, rules, problems) become text nodes, never markup.
'use strict';

const MIB = 1024 * 1024;
const MOST_ROWS = 200;
const MOST_PARTS = 1440; // of what a server tells of one time
// From an answer that took long, or did not come, to the next question, in milliseconds.
const LONGEST_PAUSE = 15000;
// Okabe and Ito's colours, which people who do not tell red from green can tell apart. The legend
// has them in the order of the picture, and each has a pattern of its own there.
const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442',
                 '#7a5195', '#8c564b', '#5a9bd4', '#bcbd22', '#17becf'];
const OTHERS = '#8a8a8a';
const CAUSES = [['limit', 'its limit'], ['share', 'its share'], ['kept', 'a kept slot'],
                ['depth', 'a full server'], ['class', 'another class'],
                ['client', 'its slow client']];
const PARTS = [...CAUSES, ['server', 'at the data server'], ['rest', 'no request here']];

const byId = (id) => document.getElementById(id);
const state = {back: 120, name: '', status: null, seen: new Map(), charts: {}};

// --- Elements ----------------------------------------------------------------------------------

function element(kind, text, className) {
  const made = document.createElement(kind);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function svg(kind, attributes) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// A sample of the colour, with dashes that differ from one number to the next.
function sample(colour, number) {
  const made = svg('svg', {viewBox: '0 0 24 12', 'aria-hidden': 'true'});
  made.append(svg('rect', {x: 0, y: 0, width: 24, height: 12, fill: colour}));
  const dashes = ['0 24', '24 0', '2 2', '6 3', '1 4', '8 2 2 2'][number % 6];
  made.append(svg('line', {x1: 0, y1: 6, x2: 24, y2: 6, stroke: '#000', 'stroke-width': 2,
                           'stroke-dasharray': dashes}));
  return made;
}

function legend(list, rows) {
  list.replaceChildren(...rows.map(([colour, text, name], number) => {
    const item = element('li');
    item.append(sample(colour, number), name ? nameButton(name, text) : element('span', text));
    return item;
  }));
}

function nameButton(name, text) {
  const button = element('button', text ?? name, 'name');
  button.type = 'button';
  button.addEventListener('click', () => { ask(name); });
  return button;
}

// `columns`: [title, is a number]. A cell is a text or an element.
function fillTable(table, columns, rows, empty) {
  const head = element('thead');
  const titles = head.appendChild(element('tr'));
  for (const [title, isNumber] of columns) {
    const cell = titles.appendChild(element('th', title, isNumber ? 'number' : ''));
    cell.scope = 'col';
  }
  const body = element('tbody');
  for (const row of rows) {
    const line = body.appendChild(element('tr'));
    row.forEach((value, at) => {
      const cell = line.appendChild(element('td', undefined, columns[at][1] ? 'number' : ''));
      cell.append(value ?? '');
    });
  }
  if (rows.length === 0) {
    const cell = body.appendChild(element('tr')).appendChild(element('td', empty));
    cell.colSpan = columns.length;
  }
  table.replaceChildren(head, body);
}

// --- Numbers -----------------------------------------------------------------------------------

const fixed = (value, digits = 1) => Number.isFinite(value) ? value.toFixed(digits) : '-';
const mib = (bytes) => fixed(bytes / MIB);
const percent = (part) => `${fixed(100 * part, 0)}%`;
function time(us) {
  if (us >= 1e6) return `${fixed(us / 1e6)} s`;
  return us >= 1e3 ? `${fixed(us / 1e3)} ms` : `${fixed(us, 0)} us`;
}
const clock = (seconds) => seconds > 0 ? new Date(seconds * 1000).toLocaleString() : '';

// --- Questions ---------------------------------------------------------------------------------

async function question(path, parameters) {
  const query = new URLSearchParams(parameters ?? {}).toString();
  const answer = await fetch(query ? `${path}?${query}` : path, {cache: 'no-store'});
  const text = await answer.text();
  let read;
  try {
    read = JSON.parse(text);
  } catch {
    throw new Error(text.trim() || `status ${answer.status}`);
  }
  if (!answer.ok) throw new Error(read.error ?? `status ${answer.status}`);
  return read;
}

function say(problem) {
  const line = byId('state');
  line.textContent = problem;
  line.className = problem.startsWith('as of') ? '' : 'bad';
}

// Asks again and again, with a pause that grows with the time that an answer takes: pictures of
// 10,000 virtual PFSes must not keep a server busy.
function repeat(what, pause) {
  let timer;
  let running = false;
  let again = false;
  const go = async () => {
    clearTimeout(timer);
    if (running) {
      again = true;
      return;
    }
    running = true;
    const begin = performance.now();
    try {
      await what();
    } catch (problem) {
      say(`no answer: ${problem.message}`);
    }
    running = false;
    const took = performance.now() - begin;
    timer = setTimeout(go, again ? 0 : Math.max(pause(), Math.min(20 * took, LONGEST_PAUSE)));
    again = false;
  };
  go();
  return go;
}

// --- Pictures ----------------------------------------------------------------------------------

// Sums over servers, in points of one length: [{at, us, bytes: Map, held: {cause: us}}]. What a server
// tells of a longer time is spread over it.
function pointsOf(series) {
  const lengths = series.servers.flatMap((each) => each.length_us).sort((one, other) => one - other);
  const length = Math.max(1, Math.round((lengths[Math.floor(lengths.length / 2)] ?? 1e6) / 1e6));
  const points = new Map();
  const pointAt = (at) => {
    if (!points.has(at)) points.set(at, {at, bytes: new Map(), held: {}, us: length * 1e6});
    return points.get(at);
  };
  for (const server of series.servers) {
    const lines = [...server.lines, {...server.others, name: null}];
    server.begin_at.forEach((begin, index) => {
      const count = Math.min(MOST_PARTS, Math.max(1, Math.round(server.length_us[index] / 1e6 / length)));
      for (let part = 0; part < count; ++part) {
        const point = pointAt((Math.floor(begin / length) + part) * length);
        for (const line of lines) {
          const bytes = (line.bytes[index] ?? 0) / count;
          point.bytes.set(line.name, (point.bytes.get(line.name) ?? 0) + bytes);
          for (const [cause] of CAUSES) {
            const held = (line.held_us[cause][index] ?? 0) / count;
            point.held[cause] = (point.held[cause] ?? 0) + held;
          }
        }
      }
    });
  }
  return [...points.values()].sort((one, other) => one.at - other.at);
}

function busiest(points) {
  const sums = new Map();
  for (const point of points) {
    for (const [name, bytes] of point.bytes) {
      if (name !== null) sums.set(name, (sums.get(name) ?? 0) + bytes);
    }
  }
  return [...sums].filter(([, bytes]) => bytes > 0)
      .sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1))
      .slice(0, COLOURS.length).map(([name]) => name);
}

// A stacked chart in `id`. Rows: [Date, number, ...].
function draw(id, labels, colours, rows, digits) {
  const options = {
    file: rows.length > 0 ? rows : [[new Date(), ...labels.map(() => 0)]],
    labels: ['time', ...labels.map((label, number) => `${number}`)],
    colors: colours,
    stackedGraph: true,
    fillAlpha: 0.75,
    strokeWidth: 1,
    legend: 'never',
    includeZero: true,
    drawGrid: true,
    gridLineColor: getComputedStyle(document.body).getPropertyValue('--line'),
    axisLineColor: getComputedStyle(document.body).getPropertyValue('--line'),
    axes: {x: {axisLabelWidth: 72, pixelsPerLabel: 90},
           y: {axisLabelFormatter: (value) => fixed(value, digits)}},
    dateWindow: [Date.now() - state.back * 1000, Date.now()],
  };
  const chart = state.charts[id];
  // dygraphs keeps its lines: with others it is made anew.
  if (chart && chart.colours === colours.join()) {
    chart.graph.updateOptions(options);
    return;
  }
  if (chart) chart.graph.destroy();
  const {file, ...rest} = options;
  state.charts[id] = {graph: new Dygraph(byId(id), file, {...rest, interactionModel: {}}),
                      colours: colours.join()};
}

// Virtual PFSes keep their colours as long as they are shown.
function coloursOf(names) {
  for (const name of state.seen.keys()) if (!names.includes(name)) state.seen.delete(name);
  const free = COLOURS.filter((colour) => ![...state.seen.values()].includes(colour));
  for (const name of names) if (!state.seen.has(name)) state.seen.set(name, free.shift());
  return names.map((name) => state.seen.get(name));
}

async function showSeries() {
  const series = await question('/api/series', {back: state.back});
  const points = pointsOf(series);
  const names = busiest(points);
  const colours = [OTHERS, ...coloursOf(names)];
  const rest = (point) => [...point.bytes].reduce(
      (sum, [name, bytes]) => names.includes(name) ? sum : sum + bytes, 0);
  const rate = (bytes, point) => bytes / MIB / (point.us / 1e6);
  draw('throughput', ['others', ...names], colours, points.map((point) =>
      [new Date(point.at * 1000), rate(rest(point), point),
       ...names.map((name) => rate(point.bytes.get(name) ?? 0, point))]), 0);
  const last = points[points.length - 2] ?? points[points.length - 1];
  const shown = (name) => last ? ` ${fixed(rate(last.bytes.get(name) ?? 0, last))}` : '';
  legend(byId('throughput-legend'), [
    [OTHERS, 'others'],
    ...names.map((name, number) => [colours[number + 1], name + shown(name), name]),
  ]);
  const causeColours = CAUSES.map((_, number) => COLOURS[number]);
  draw('waits', CAUSES.map(([, text]) => text), causeColours, points.map((point) =>
      [new Date(point.at * 1000), ...CAUSES.map(([cause]) => point.held[cause] / point.us)]), 1);
  legend(byId('waits-legend'),
         CAUSES.map(([, text], number) => [causeColours[number], `held by ${text}`]));
}

// --- Tables ------------------------------------------------------------------------------------

function showStatus(status) {
  const isSite = Array.isArray(status.stages);
  const program = status.program ?? (status.listen ? 'vpfs-proxy' : 'vpfs-mount');
  const name = isSite ? status.name : status.listen ?? status.mount_point ?? '';
  byId('title').textContent = `${program.split(' ')[0]} ${name}`;
  document.title = byId('title').textContent;
  byId('about').textContent = isSite
      ? `policy ${status.policy}, term ${status.term}`
      : `policy ${status.policy}` + (status.upstream ? `, in front of ${status.upstream}` : '');
  const problems = [];
  if (status.bypass) problems.push('bypass: nothing is held');
  if (status.draining) problems.push('draining');
  if (status.policy_problem) problems.push(status.policy_problem);
  if (status.reloads?.last_error) problems.push(`the last reload failed: ${status.reloads.last_error}`);
  const missing = isSite ? status.stages.filter((each) => !each.connected).length : 0;
  if (missing > 0) problems.push(`stages that are not connected: ${missing} of ${status.stages.length}`);
  say(problems.length > 0 ? problems.join('; ') : `as of ${new Date().toLocaleTimeString()}`);
  byId('stages-part').hidden = !isSite;
  if (isSite) showStages(status.stages);
  showNow(isSite ? status.jobs : status.virtual_pfs ?? [], isSite);
}

function showStages(stages) {
  fillTable(byId('stages'), [['Stage'], ['State'], ['Rules'], ['Program'], ['Address'], ['Problem']],
            stages.map((each) => {
              const is = !each.connected ? 'not connected' : each.silent ? 'silent'
                  : each.late ? 'late' : 'connected';
              return [each.name, element('span', is, is === 'connected' ? '' : 'bad'),
                      each.rules?.state, each.program, each.address, each.problem];
            }), 'none has connected');
}

function limitOf(row) {
  const parts = [];
  if (row.rate) parts.push(`${mib(row.rate)} MiB/s`);
  if (row.operations) parts.push(`${row.operations} IOPS`);
  if (row.allocated_rate) parts.push(`coordinator: ${mib(row.allocated_rate)} MiB/s`);
  return parts.join(', ');
}

function showNow(all, isSite) {
  const wanted = byId('filter').value.toLowerCase();
  const rows = all.filter((each) => each.name.toLowerCase().includes(wanted));
  const weightOf = (row) => isSite ? row.cost_done
      : row.queued_bytes + row.outstanding_bytes || row.done_bytes / 1e9;
  rows.sort((one, other) => weightOf(other) - weightOf(one) || (one.name < other.name ? -1 : 1));
  byId('now-count').textContent = rows.length > MOST_ROWS
      ? `${MOST_ROWS} of ${rows.length} are shown` : `${rows.length} of ${all.length}`;
  const shown = rows.slice(0, MOST_ROWS);
  if (isSite) {
    fillTable(byId('now'), [['Name'], ['Weight', 1], ['Stages', 1], ['Granted MiB/s', 1], ['Total']],
              shown.map((row) => [
                nameButton(row.name), row.weight, row.stages, mib(row.granted?.bytes ?? 0),
                !row.total ? '' : row.total.reached ? 'reached'
                    : `not reached: ${row.total.why}; ${row.total.would_help}`]),
              'no virtual PFS is active');
    return;
  }
  const lends = rows.some((row) => row.record !== undefined);
  const columns = [['Name'], ['Weight', 1], ['Limit'], ['Queued', 1], ['At the server', 1],
                   ['p99 wait', 1], ['Waits for']];
  if (lends) columns.splice(3, 0, ['Lent less borrowed', 1]);
  fillTable(byId('now'), columns, shown.map((row) => {
    const cells = [nameButton(row.name), row.weight, limitOf(row), row.queued_requests,
                   row.outstanding_requests, time(row.wait_us.p99), row.oldest_waits_for];
    if (lends) cells.splice(3, 0, row.record ?? '');
    return cells;
  }), 'there is no virtual PFS of that name');
}

// Jain's index of what was delivered over what was entitled, of those that wanted something.
function indexOf(rows) {
  const parts = rows.filter((each) => each.entitled_cost > 0)
      .map((each) => Math.min(1, each.cost / each.entitled_cost));
  const sum = parts.reduce((all, part) => all + part, 0);
  const squares = parts.reduce((all, part) => all + part * part, 0);
  return squares > 0 ? sum * sum / (parts.length * squares) : 1;
}

async function showFairness() {
  const past = await question('/api/past', {back: state.back});
  const rows = past.virtual_pfs;
  const [from, to] = [past.from_at, past.to_at];
  byId('index').textContent = rows.length === 0 ? 'nothing is known of this time'
      : `${clock(from)} to ${clock(to)}; Jain's index ${fixed(indexOf(rows), 3)}` +
        problemText(past.problems);
  fillTable(byId('fairness'),
            [['Name'], ['Entitled MiB', 1], ['Wanted MiB', 1], ['Delivered MiB', 1], ['Delivered', 1],
             ['Lag MiB', 1], ['Bound MiB', 1], ['Held for most by']],
            rows.map((each) => {
              const cause = CAUSES.map(([key, text]) => [each.parts[key], text])
                  .sort((one, other) => other[0] - one[0])[0];
              return [nameButton(each.name), mib(each.entitled_bytes), mib(each.wanted_bytes),
                      mib(each.delivered_bytes),
                      each.entitled_cost > 0 ? percent(each.cost / each.entitled_cost) : '-',
                      each.lag_bytes === undefined ? '-' : mib(each.lag_bytes),
                      each.lag_bound_bytes === undefined ? '-' : mib(each.lag_bound_bytes),
                      cause[0] > 0.005 ? `${cause[1]}, ${percent(cause[0])}` : 'nothing'];
            }), 'nothing was done in this time');
}

function problemText(problems) {
  return problems.length === 0 ? ''
      : '; no answer from ' + problems.map((each) => `${each.server} (${each.text})`).join(', ');
}

async function showRules() {
  const rules = await question('/api/rules');
  fillTable(byId('rules'), [['Name'], ['Condition'], ['Words'], ['Hits', 1], ['From'], ['Until'], ['Note']],
            rules.rules.map((each) => [
              each.name, each.condition || 'everything', each.words.join(' '), each.hits, each.origin,
              clock(each.until_at),
              [each.problem && `not in force: ${each.problem}`,
               each.hidden_by && `hidden by ${each.hidden_by}`,
               each.shadow && `shadow: would have held ${each.would_hold.requests} requests`]
                  .filter(Boolean).join('; ')]), 'there are no rules');
  const changes = await question('/api/changes');
  fillTable(byId('changes'), [['Version', 1], ['When'], ['Who'], ['What']],
            changes.history.slice(-20).reverse().map((each) => [
              each.version, clock(each.at), each.who,
              [each.command, ...each.differences.map((one) =>
                  `${one.kind}: ${one.after || one.before}`)].join('\n')]),
            'no live rule was changed');
}

// --- Why ---------------------------------------------------------------------------------------

async function ask(name) {
  state.name = name;
  byId('why').hidden = false;
  byId('why-title').textContent = `Why did ${name} get what it got?`;
  byId('why-text').textContent = 'asking';
  byId('why-parts').replaceChildren();
  byId('why-legend').replaceChildren();
  byId('why-title').focus();
  byId('why').scrollIntoView({block: 'nearest'});
  try {
    await showWhy();
  } catch (problem) {
    byId('why-text').textContent = `no answer: ${problem.message}`;
  }
}

async function showWhy() {
  const name = state.name;
  if (name === '') return;
  const past = await question('/api/past', {back: state.back, name});
  if (name !== state.name) return;
  byId('why-text').textContent = past.why + problemText(past.problems);
  const row = past.virtual_pfs.find((each) => each.asked) ?? null;
  byId('why-parts').hidden = row === null;
  if (row === null) return;
  const picture = svg('svg', {viewBox: '0 0 100 10', preserveAspectRatio: 'none'});
  let x = 0;
  const shown = [];
  PARTS.forEach(([key, text], number) => {
    const width = 100 * (row.parts[key] ?? 0);
    const colour = key === 'rest' ? OTHERS : COLOURS[number];
    picture.append(svg('rect', {x, y: 0, width, height: 10, fill: colour}));
    x += width;
    if (width >= 0.5) shown.push([colour, `${text} ${percent(width / 100)}`]);
  });
  byId('why-parts').replaceChildren(picture);
  byId('why-parts').setAttribute('aria-label', shown.map(([, text]) => text).join(', '));
  legend(byId('why-legend'), shown);
}

// --- Beginning ---------------------------------------------------------------------------------

function start() {
  // Its legend has styles within, which the policy of contents forbids; the page has its own.
  Dygraph.PLUGINS = Dygraph.PLUGINS.filter((each) => each !== Dygraph.Plugins.Legend);
  const now = repeat(async () => {
    state.status = await question('/api/status');
    showStatus(state.status);
  }, () => 2000);
  const series = repeat(showSeries, () => state.back <= 120 ? 2000 : 10000);
  const fairness = repeat(showFairness, () => 10000);
  const why = repeat(showWhy, () => 10000);
  repeat(showRules, () => 5000);
  for (const button of document.querySelectorAll('nav button')) {
    button.addEventListener('click', () => {
      state.back = Number(button.dataset.back);
      for (const each of document.querySelectorAll('nav button')) {
        each.setAttribute('aria-pressed', String(each === button));
      }
      series();
      fairness();
      why();
    });
  }
  byId('filter').addEventListener('input', () => {
    if (state.status !== null) showStatus(state.status);
  });
  document.addEventListener('visibilitychange', () => { if (!document.hidden) now(); });
}

start();
