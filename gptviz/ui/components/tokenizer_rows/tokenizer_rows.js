// One row a tokenizer: its name, how many tokens, and the tokens themselves.
export default function (component) {
  const { data, parentElement } = component;
  const table = make('div', 'tokenizers');
  table.dataset.testid = 'tokenizers';
  table.style.setProperty('--key', data.key);
  table.append(...data.rows.map((cut) => {
    const row = make('div', 'row');
    Object.assign(row.dataset, { testid: 'tokenizer-row', tokenizer: cut.tokenizer, count: cut.count, unknown: cut.unknown });
    const name = make('div', 'name', cut.tokenizer);
    name.append(make('span', 'about', cut.about));
    const tokens = make('div', 'tokens');
    tokens.append(...cut.tokens.map(([shown, id], i) => {
      const token = make('span', 'token' + (cut.lost.includes(i) ? ' unknown' : ''), shown);
      token.style.setProperty('--chip', data.colors[i % data.colors.length]);
      token.dataset.id = id === null ? 'none' : id;
      token.title = id === null ? '`' + shown + '` has no id here' : '`' + shown + '` is id ' + id;
      return token;
    }));
    if (cut.count > cut.tokens.length)
      tokens.append(make('span', 'more', '… and ' + (cut.count - cut.tokens.length).toLocaleString('en') + ' more'));
    row.append(name, make('div', 'count', cut.count.toLocaleString('en')), tokens);
    return row;
  }));
  parentElement.querySelector('.tokenizers')?.remove();
  parentElement.prepend(table);
  saveButtons(parentElement, () => svgOfElements(table), 'gptviz-tokenizers');
}

function make(tag, className, text = '') {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}
