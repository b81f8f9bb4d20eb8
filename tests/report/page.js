// What is wrong with how the page looks now, as a list of sentences. The browser test calls it.
() => {
  const wrong = [];
  const shown = (element) => element.checkVisibility() && element.getBoundingClientRect().width > 0;
  const words = (element) => element.textContent.trim().replace(/\s+/g, " ").slice(0, 60);

  // Nothing but what scrolls in its own container is wider than the screen.
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    wrong.push(`the page is ${root.scrollWidth} wide, the screen ${root.clientWidth}`);
  }

  // On a screen of this width tables are whole, with their last column in sight.
  if (root.clientWidth >= 1280) {
    const tables = [...document.querySelectorAll(".scroll")].filter(shown);
    if (tables.length < 20) wrong.push(`only ${tables.length} tables were looked at`);
    for (const box of tables) {
      if (box.scrollWidth > box.clientWidth) {
        wrong.push(`'${words(box)}' is ${box.scrollWidth} wide, and its box ${box.clientWidth}`);
      }
    }
  }

  const drawings = [...document.querySelectorAll("svg")].filter(shown);
  if (drawings.length === 0) wrong.push("there is no plot");
  for (const drawing of drawings) {
    const title = drawing.querySelector(":scope > title");
    const name = title ? words(title) : "a plot without a title";
    const description = drawing.querySelector(":scope > desc");
    if (drawing.getAttribute("role") !== "img" || !title || words(title) === "") {
      wrong.push(`${name}: no text alternative`);
    }
    if (!description || words(description) === "") wrong.push(`${name}: no description`);
    // Half a pixel is how letters are placed.
    const frame = drawing.getBoundingClientRect();
    const labels = [...drawing.querySelectorAll("text")].map((label) => [words(label), label.getBoundingClientRect()]);
    for (const [label, box] of labels) {
      if (box.left < frame.left - 0.5 || box.right > frame.right + 0.5 ||
          box.top < frame.top - 0.5 || box.bottom > frame.bottom + 0.5) {
        wrong.push(`${name}: '${label}' leaves the picture`);
      }
    }
    // The boxes of letters have room above and below them: what is written begins within.
    const inner = ({left, right, top, bottom}) => {
      const rim = (bottom - top) * 0.18;
      return {left, right, top: top + rim, bottom: bottom - rim};
    };
    labels.forEach(([label, box], at) => {
      const a = inner(box);
      for (const [other, otherBox] of labels.slice(at + 1)) {
        const b = inner(otherBox);
        if (a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5) {
          wrong.push(`${name}: '${label}' and '${other}' overlap`);
        }
      }
    });
  }

  // Colours as the browser computes them, whichever way they were written.
  const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const channels = (colour) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const [red, green, blue] = channels(colour).map((value) => value / 255)
      .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (channels(colour)[3] === 255) return colour;
    }
    return "white";
  };
  const contrasts = new Map();
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!hasText || !shown(element) || ["title", "desc", "SCRIPT", "STYLE"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const drawing = element.closest("svg");
    const paper = drawing ? getComputedStyle(drawing.querySelector("rect")).fill : background(element);
    const pair = [drawing ? style.fill : style.color, paper].join(" on ");
    if (!contrasts.has(pair)) {
      const [one, other] = pair.split(" on ").map(luminance);
      contrasts.set(pair, (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05));
      if (contrasts.get(pair) < 4.5) {
        wrong.push(`'${words(element)}' has a contrast of ${contrasts.get(pair).toFixed(2)}: ${pair}`);
      }
    }
  }
  if (contrasts.size < 3) wrong.push("hardly any text was looked at");
  return wrong;
}
