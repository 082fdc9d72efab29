// Keeps a browser's place in a class. Nothing is drawn.
const DAY = 86400;

export default gv.component(
  () => gv.h('div', { class: 'seat' }),
  ({ data, send }) => {
    if (data.secret || document.cookie.split('; ').includes(`${data.cookie}=${data.left}`)) {
      const secure = location.protocol === 'https:' ? ';Secure' : '';
      document.cookie = `${data.cookie}=${data.secret};Path=/;SameSite=Lax;Max-Age=${data.secret ? DAY : 0}${secure}`;
    }
    const taught = /^#teach=([\w-]+)$/.exec(location.hash);
    if (!taught) return;
    history.replaceState(history.state, '', location.pathname + location.search);
    send('taught', taught[1]);
  },
);
