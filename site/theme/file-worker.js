// Browsers refuse workers to pages that are opened as files. There the search runs in a hidden frame instead: its script is
// loaded into the frame, and messages go both ways as if the frame were a worker.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside = new Promise((loaded) => {
        const script = inside.document.createElement("script");
        script.onload = () => loaded(inside);
        script.src = url;
        inside.document.body.append(script);
      });
    }
    postMessage(data) {
      this.inside.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
  };
}
