"use strict";

// Shows /openapi.json and lets one try each operation. What comes from the document is set as text, never as HTML.

const methods = ["get", "post", "put", "patch", "delete"];

function element(name, properties, ...children) {
  const e = Object.assign(document.createElement(name), properties);
  e.append(...children);
  return e;
}

function resolve(doc, schema) {
  const name = schema && schema.$ref && schema.$ref.split("/").pop();
  return name ? doc.components.schemas[name] : schema || {};
}

// example makes a value that shows a schema's members.
function example(doc, schema, depth = 0) {
  const s = resolve(doc, schema);
  const type = Array.isArray(s.type) ? s.type[0] : s.type;
  if (s.enum) return s.enum[0];
  if (depth > 6) return null;
  if (type === "object") {
    return Object.fromEntries(Object.entries(s.properties || {}).map(([k, v]) => [k, example(doc, v, depth + 1)]));
  }
  if (type === "array") return [example(doc, s.items, depth + 1)];
  if (type === "integer" || type === "number") return s.minimum || 0;
  if (type === "boolean") return false;
  return type === "string" ? "" : null;
}

function fields(parameters) {
  return parameters.map((p) => {
    const input = element("input", { placeholder: p.required ? "required" : "optional" });
    if (p.name === "Idempotency-Key") input.value = crypto.randomUUID ? crypto.randomUUID() : String(Date.now());
    const label = element("label", {}, `${p.name} (${p.in}) `, element("span", { className: "muted", textContent: p.description || "" }), input);
    return { p, input, label };
  });
}

function request(method, path, inputs, body) {
  const query = new URLSearchParams();
  const headers = {};
  const token = document.getElementById("token").value.trim();
  if (token) headers.Authorization = `Bearer ${token}`;
  for (const { p, input } of inputs) {
    if (p.in === "path") path = path.replace(`{${p.name}}`, encodeURIComponent(input.value));
    else if (input.value === "") continue;
    else if (p.in === "query") query.set(p.name, input.value);
    else if (p.in === "header") headers[p.name] = input.value;
  }
  if (body) headers["Content-Type"] = "application/json";
  const suffix = query.size ? `?${query}` : "";
  return fetch(path + suffix, { method: method.toUpperCase(), headers, body: body ? body.value : undefined });
}

async function show(answer, output) {
  const text = await answer.text();
  let pretty = text;
  try { pretty = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: shown as it is */ }
  const replayed = answer.headers.get("Idempotency-Replayed") ? "  (replayed)" : "";
  output.textContent = `${answer.status} ${answer.statusText}${replayed}\n\n${pretty}`;
}

function operation(doc, path, method, op) {
  const inputs = fields(op.parameters || []);
  const content = op.requestBody && op.requestBody.content["application/json"];
  const body = content && element("textarea", { value: JSON.stringify(example(doc, content.schema), null, 2) });
  const output = element("pre", { hidden: true });
  const button = element("button", { type: "button", textContent: "Try it" });
  button.addEventListener("click", async () => {
    output.hidden = false;
    output.textContent = "…";
    try { await show(await request(method, path, inputs, body), output); } catch (e) { output.textContent = String(e); }
  });
  const answers = Object.entries(op.responses || {}).map(([status, r]) => `${status} ${r.description}`).join(" · ");
  return element("details", {},
    element("summary", {}, element("b", { textContent: method.toUpperCase() }), element("code", { textContent: path }), op.summary || ""),
    element("p", { textContent: op.description || "" }),
    ...inputs.map((i) => i.label),
    ...(body ? [element("label", {}, "Body", body)] : []),
    button, output,
    element("p", { className: "muted", textContent: `Answers: ${answers}` }));
}

async function main() {
  const operations = document.getElementById("operations");
  const doc = await (await fetch("/openapi.json")).json();
  document.getElementById("about").textContent = doc.info.description || "";
  operations.replaceChildren();
  for (const path of Object.keys(doc.paths).sort()) {
    for (const method of methods.filter((m) => doc.paths[path][m])) {
      operations.append(operation(doc, path, method, doc.paths[path][method]));
    }
  }
}

main().catch((e) => { document.getElementById("operations").textContent = `The document can't be shown: ${e}`; });
