// Every token as a card: position, text, id, bytes; tokens of one piece share a line under them.
export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let cards = parentElement.querySelector('.cards');
  if (!cards) {
    cards = make('div', 'cards');
    cards.dataset.testid = 'token-cards';
    parentElement.appendChild(cards);
  }
  const signature = JSON.stringify([data.mode, data.pieces]);
  if (cards.dataset.signature !== signature) { // keep the cards, and the focus, when only the selection changes
    cards.replaceChildren(...data.pieces.map(piece));
    cards.dataset.signature = signature;
  }
  for (const card of cards.querySelectorAll('.card')) {
    const selected = Number(card.dataset.position) === data.selected;
    card.setAttribute('aria-pressed', selected);
    if (selected) {
      for (const other of cards.children) other.classList.toggle('mine', other === card.parentElement);
      const top = card.parentElement.offsetTop, bottom = top + card.parentElement.offsetHeight;
      if (top < cards.scrollTop || bottom > cards.scrollTop + cards.clientHeight) cards.scrollTop = top - 4;
    }
  }
  saveButtons(parentElement, () => svgOfElements(cards), 'gptviz-tokens');
  cards.onclick = (event) => {
    const card = event.target.closest('.card');
    if (card) setTriggerValue('position', Number(card.dataset.position));
  };

  function piece(cut) {
    const box = make('div', 'piece' + (cut.special ? ' special' : ''));
    box.dataset.testid = 'piece';
    box.dataset.text = cut.shown;
    box.title = cut.title;
    box.append(...cut.tokens.map((token) => {
      const card = make('button', 'card');
      Object.assign(card.dataset, { testid: 'token-card', position: token.position, id: token.id, bytes: token.hex });
      card.title = token.title;
      card.setAttribute('aria-label', token.title);
      const text = make('span', 'text', token.shown);
      text.style.setProperty('--chip', token.color);
      card.append(make('span', 'position', token.position), text, make('span', 'id', token.id), make('span', 'hex', token.hex));
      return card;
    }));
    return box;
  }
}

function make(tag, className, text = '') {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}
