// What a hostile page tries: every way in which a browser sends a request to another server.
//
// `targets` are {url, paths}. Resolves to the responses that the page could read, as {way, url, status}.

const PATIENCE_MS = 5000;

function within(promise) {
  return Promise.race([promise, new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
}

function loaded(element) {
  return within(new Promise((resolve) => {
    element.onload = element.onerror = resolve;
    document.body.append(element);
  }));
}

// Ways in which script reads what comes back, if it may.
const CALLS = {
  "simple fetch": (url) => fetch(url, { method: "POST", body: "{}" }),
  "fetch without CORS": (url) => fetch(url, { method: "POST", mode: "no-cors", body: "{}" }),
  "fetch with credentials": (url) =>
    fetch(url, { method: "POST", mode: "no-cors", credentials: "include", body: new URLSearchParams("a=b") }),
  "fetch of JSON": (url) =>
    fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" }),
  "fetch of gRPC": (url) =>
    fetch(url, { method: "POST", headers: { "content-type": "application/grpc" }, body: "\0\0\0\0\0" }),
  "fetch without referrer": (url) =>
    fetch(url, { method: "POST", mode: "no-cors", referrerPolicy: "no-referrer", body: "{}" }),
  "fetch that outlives its page": (url) =>
    fetch(url, { method: "POST", mode: "no-cors", keepalive: true, body: "{}" }),
  PUT: (url) => fetch(url, { method: "PUT", body: "{}" }),
  DELETE: (url) => fetch(url, { method: "DELETE" }),
  GET: (url) => fetch(url),
  "GET without CORS": (url) => fetch(url, { mode: "no-cors" }),
  XMLHttpRequest: (url) =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("POST", url);
      request.onload = () => resolve(request);
      request.onerror = reject;
      request.send("{}");
    }),
};

function form(url, enctype) {
  const frame = document.createElement("iframe");
  frame.name = `frame${document.querySelectorAll("iframe").length}`;
  document.body.append(frame);
  const form = document.createElement("form");
  Object.assign(form, { action: url, method: "POST", enctype, target: frame.name });
  const input = document.createElement("input");
  Object.assign(input, { name: "{}", value: "" });
  form.append(input);
  document.body.append(form);
  const done = within(new Promise((resolve) => (frame.onload = resolve)));
  form.submit();
  return done;
}

function element(name, attributes) {
  return loaded(Object.assign(document.createElement(name), attributes));
}

// Ways in which nobody reads what comes back.
const SENDERS = {
  "form of text": (url) => form(url, "text/plain"),
  form: (url) => form(url, "application/x-www-form-urlencoded"),
  "form of files": (url) => form(url, "multipart/form-data"),
  image: (url) => element("img", { src: url }),
  script: (url) => element("script", { src: url }),
  style: (url) => element("link", { rel: "stylesheet", href: url }),
  frame: (url) => element("iframe", { src: url }),
  "frame without origin": (url) =>
    element("iframe", {
      sandbox: "allow-scripts",
      srcdoc: `<script>fetch(${JSON.stringify(url)}, { method: "POST", mode: "no-cors", body: "{}" })<\/script>`,
    }),
  beacon: async (url) => navigator.sendBeacon(url, "{}"),
  "beacon of JSON": async (url) =>
    navigator.sendBeacon(url, new Blob(["{}"], { type: "application/json" })),
  events: (url) =>
    within(new Promise((resolve) => {
      const source = new EventSource(url);
      source.onopen = source.onerror = () => resolve(source.close());
    })),
  "web socket": (url) =>
    within(new Promise((resolve) => {
      const socket = new WebSocket(url.replace("http", "ws"));
      socket.onopen = socket.onerror = socket.onclose = () => resolve(socket.close());
    })),
};

async function attack(targets) {
  const readable = [];
  const tries = [];
  for (const { url, paths } of targets) {
    for (const path of paths) {
      for (const [way, call] of Object.entries(CALLS)) {
        tries.push(
          within(call(url + path)).then(
            (response) => response?.status && readable.push({ way, url: url + path, status: response.status }),
            () => {},
          ),
        );
      }
      for (const send of Object.values(SENDERS)) {
        tries.push(send(url + path));
      }
    }
  }
  await Promise.all(tries);
  return readable;
}
