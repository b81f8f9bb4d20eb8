// The part of the pixels of two pictures, PNG in base64, that differ in any colour by more than a fifth; 1 where their
// sizes differ. The browser test calls it.
async ([one, other]) => {
  const read = async (text) => {
    const picture = new Image();
    picture.src = `data:image/png;base64,${text}`;
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.width, picture.height];
    const paper = canvas.getContext("2d");
    paper.drawImage(picture, 0, 0);
    return paper.getImageData(0, 0, picture.width, picture.height);
  };
  const [a, b] = [await read(one), await read(other)];
  if (a.width !== b.width || a.height !== b.height) return 1;
  let different = 0;
  for (let at = 0; at < a.data.length; at += 4) {
    const differs = [0, 1, 2].some((colour) => Math.abs(a.data[at + colour] - b.data[at + colour]) > 51);
    if (differs) different += 1;
  }
  return different / (a.data.length / 4);
}
