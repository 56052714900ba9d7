// Shows the description of the API as a page. All text is put in as text, never as markup.
"use strict";

const byId = (id) => document.getElementById(id);

function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// A token in the address is taken out of it at once, so that it is in no history and in no picture of the screen.
function tokenOfAddress() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found) history.replaceState(null, "", location.pathname);
  return found;
}

function named(reference) {
  return reference.split("/").pop();
}

function kind(schema) {
  if (!schema) return "";
  if (schema.$ref) return named(schema.$ref);
  if (schema.anyOf) return schema.anyOf.map(kind).join(" | ");
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `[${kind(schema.items)}]`;
  return [schema.type, schema.format].filter(Boolean).join(", ") || "any";
}

function bounds(schema) {
  const names = ["minimum", "maximum", "minLength", "maxLength", "maxItems", "pattern", "default"];
  const inner = (schema && schema.anyOf ? schema.anyOf : [schema]).find((each) => each && each.type !== "null") || {};
  const all = { ...inner, ...schema };
  return names.filter((name) => all[name] !== undefined).map((name) => `${name} ${JSON.stringify(all[name])}`).join(", ");
}

function table(heads, rows) {
  if (!rows.length) return null;
  const line = (cell, cells) => element("tr", ...cells.map((each) => element(cell, each ?? "")));
  return element("table", line("th", heads), ...rows.map((row) => line("td", row)));
}

function fields(schema) {
  const required = new Set(schema.required || []);
  return table(["field", "", "type", "meaning"], Object.entries(schema.properties || {}).map(([name, field]) => [
    element("code", name), required.has(name) ? "required" : "", element("code", kind(field)),
    [field.description, bounds(field)].filter(Boolean).join(" · "),
  ]));
}

function model(name, schema) {
  const shown = element("details", element("summary", element("code", name)), element("p", schema.description || ""));
  shown.append(fields(schema) || element("pre", JSON.stringify(schema, null, 2)));
  for (const example of schema.examples || []) shown.append(element("pre", JSON.stringify(example, null, 2)));
  return shown;
}

function content(body) {
  return Object.entries((body && body.content) || {}).map(([type, each]) => `${type}: ${kind(each.schema)}`).join("; ");
}

function operation(path, method, found) {
  const heading = element("h2", element("span", method.toUpperCase()), ` ${path}`);
  heading.firstChild.className = "method";
  const shown = element("article", heading, element("p", found.description || found.summary || ""));
  shown.id = found.operationId;
  const parameters = table(["parameter", "in", "type", "meaning"], (found.parameters || []).map((each) => [
    element("code", each.name), each.in + (each.required ? ", required" : ""), element("code", kind(each.schema)),
    [each.description, bounds(each.schema)].filter(Boolean).join(" · "),
  ]));
  if (parameters) shown.append(parameters);
  if (found.requestBody) shown.append(element("p", "Body: ", element("code", content(found.requestBody))));
  shown.append(table(["answer", "meaning", "body"], Object.entries(found.responses).map(([status, each]) => [
    element("code", status), each.description, element("code", content(each)),
  ])));
  return shown;
}

function show(description) {
  byId("said").textContent = `Version ${description.info.version}. ${description.info.description || ""}`;
  const list = element("ul");
  const all = [];
  for (const [path, methods] of Object.entries(description.paths)) {
    for (const [method, found] of Object.entries(methods)) {
      const link = element("a", `${method.toUpperCase()} ${path}`);
      link.href = `#${found.operationId}`;
      list.append(element("li", link));
      all.push(operation(path, method, found));
    }
  }
  const models = Object.entries((description.components || {}).schemas || {}).map(([name, schema]) => model(name, schema));
  byId("contents").replaceChildren(list);
  byId("operations").replaceChildren(...all, element("h2", "What bodies are made of"), ...models);
}

async function load(token) {
  const answer = await fetch("openapi.json", { headers: { Authorization: `Bearer ${token}` } });
  if (!answer.ok) {
    sessionStorage.removeItem("rota-token");
    byId("said").textContent = answer.status === 401 ? "This token is not valid." : `The server said ${answer.status}.`;
    return;
  }
  sessionStorage.setItem("rota-token", token);
  byId("login").hidden = true;
  show(await answer.json());
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  load(byId("token").value.trim());
});
const known = tokenOfAddress() || sessionStorage.getItem("rota-token");
if (known) load(known);
