//! The dashboard in Grafana's format.

use serde::Serialize;
use serde_json::{Value, json};

use super::expression::TARGET;
use super::panels::{Panel, Row, View};
use crate::family::Family;

/// Columns of the grid.
pub const WIDTH: u32 = 24;

/// The release of the format.
const SCHEMA: u32 = 39;

/// Identifier of the dashboard, by which Grafana replaces an older import.
const UID: &str = "halprof-agent";

/// A dashboard.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dashboard {
    annotations: Value,
    description: &'static str,
    editable: bool,
    graph_tooltip: u32,
    id: Option<u32>,
    links: [Value; 0],
    /// Headings and panels.
    pub panels: Vec<Item>,
    refresh: &'static str,
    schema_version: u32,
    tags: [&'static str; 2],
    templating: Templating,
    time: Value,
    timezone: &'static str,
    title: &'static str,
    uid: &'static str,
}

/// A heading or a panel.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    #[serde(skip_serializing_if = "Option::is_none")]
    collapsed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    datasource: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field_config: Option<Value>,
    /// Place on the grid.
    pub grid_pos: Position,
    /// Identifier within the dashboard.
    pub id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    panels: Option<[Value; 0]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    targets: Vec<Target>,
    /// Title.
    pub title: &'static str,
    r#type: &'static str,
}

/// A place on the grid.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Position {
    /// Height.
    pub h: u32,
    /// Width.
    pub w: u32,
    /// Column.
    pub x: u32,
    /// Line.
    pub y: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    datasource: Value,
    editor_mode: &'static str,
    expr: String,
    instant: bool,
    legend_format: &'static str,
    range: bool,
    ref_id: String,
}

#[derive(Debug, Serialize)]
struct Templating {
    list: Vec<Variable>,
}

/// What the user selects above the dashboard.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Variable {
    #[serde(skip_serializing_if = "Option::is_none")]
    all_value: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    datasource: Option<Value>,
    hide: u32,
    include_all: bool,
    label: &'static str,
    multi: bool,
    name: &'static str,
    options: [Value; 0],
    query: Value,
    refresh: u32,
    regex: &'static str,
    skip_url_sync: bool,
    sort: u32,
    r#type: &'static str,
}

/// Returns the text of a dashboard. Keys are sorted, because whether [`Value`] sorts them depends on the features that
/// other crates of a build select.
pub fn text(dashboard: &Dashboard) -> String {
    let mut value = serde_json::to_value(dashboard).unwrap();
    value.sort_all_objects();
    serde_json::to_string_pretty(&value).unwrap() + "\n"
}

/// Returns the dashboard of these panels.
pub fn dashboard(rows: &[Row]) -> Dashboard {
    Dashboard {
        annotations: json!({ "list": [] }),
        description: "Counts, metrics and profiles of halprof's agents, and what the agents cost.",
        editable: true,
        graph_tooltip: 1,
        id: None,
        links: [],
        panels: layout(rows),
        refresh: "30s",
        schema_version: SCHEMA,
        tags: ["halprof", "prometheus"],
        templating: Templating { list: variables() },
        time: json!({ "from": "now-1h", "to": "now" }),
        timezone: "browser",
        title: "halprof",
        uid: UID,
    }
}

/// Returns the queries of the variables: the samples, and the label of which the user selects values.
pub fn variable_queries() -> [(&'static str, String); 3] {
    let [job, instance] = TARGET;
    [
        (job, Family::Up.promql()),
        (instance, format!("{}{{job=~\"$job\"}}", Family::Up.promql())),
        ("event", format!("{}{{job=~\"$job\", instance=~\"$instance\"}}", Family::EventsScaled.promql())),
    ]
}

fn variables() -> Vec<Variable> {
    let datasource = Variable {
        all_value: None,
        current: None,
        datasource: None,
        hide: 0,
        include_all: false,
        label: "Data source",
        multi: false,
        name: "datasource",
        options: [],
        query: json!("prometheus"),
        refresh: 1,
        regex: "",
        skip_url_sync: false,
        sort: 0,
        r#type: "datasource",
    };
    let labels = ["Job", "Instance", "Event"];
    let queries = variable_queries().into_iter().zip(labels).map(|((name, samples), label)| Variable {
        all_value: Some(".*"),
        current: Some(json!({ "selected": true, "text": ["All"], "value": ["$__all"] })),
        datasource: Some(prometheus()),
        hide: 0,
        include_all: true,
        label,
        multi: true,
        name,
        options: [],
        // `qryType` 1 is the query for values of a label.
        query: json!({
            "qryType": 1,
            "query": format!("label_values({samples}, {name})"),
            "refId": "PrometheusVariableQueryEditor-VariableQuery",
        }),
        refresh: 2,
        regex: "",
        skip_url_sync: false,
        sort: 1,
        r#type: "query",
    });
    std::iter::once(datasource).chain(queries).collect()
}

/// Returns the data source that the user selects.
fn prometheus() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

/// Places headings and panels from left to right and from top to bottom.
fn layout(rows: &[Row]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut y = 0;
    for row in rows {
        let id = items.len();
        items.push(heading(row.title, number(id), y));
        y += 1;
        let mut x = 0;
        for panel in &row.panels {
            if x + panel.width > WIDTH {
                x = 0;
                y += row.height;
            }
            let id = items.len();
            items.push(item(panel, number(id), Position { h: row.height, w: panel.width, x, y }));
            x += panel.width;
        }
        y += row.height;
    }
    items
}

/// Returns the identifier of the item with this index. Zero is none in Grafana.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap() + 1
}

fn heading(title: &'static str, id: u32, y: u32) -> Item {
    Item {
        collapsed: Some(false),
        datasource: None,
        description: None,
        field_config: None,
        grid_pos: Position { h: 1, w: WIDTH, x: 0, y },
        id,
        options: None,
        panels: Some([]),
        targets: Vec::new(),
        title,
        r#type: "row",
    }
}

fn item(panel: &Panel, id: u32, grid_pos: Position) -> Item {
    let is_instant = panel.view != View::Lines;
    let targets = panel.queries.iter().zip('A'..).map(|(query, letter)| Target {
        datasource: prometheus(),
        editor_mode: "code",
        expr: query.expression.clone(),
        instant: is_instant,
        legend_format: query.legend,
        range: !is_instant,
        ref_id: letter.to_string(),
    });
    Item {
        collapsed: None,
        datasource: Some(prometheus()),
        description: Some(panel.description.clone()),
        field_config: Some(field_config(panel)),
        grid_pos,
        id,
        options: Some(options(panel.view)),
        panels: None,
        targets: targets.collect(),
        title: panel.title,
        r#type: if is_instant { "stat" } else { "timeseries" },
    }
}

fn field_config(panel: &Panel) -> Value {
    let mut defaults = json!({ "unit": panel.unit });
    match panel.view {
        View::Lines => {
            defaults["color"] = json!({ "mode": "palette-classic" });
            // With a soft minimum, a rate of zero is a line at the bottom, not in the middle.
            defaults["custom"] = json!({
                "axisSoftMin": 0, "drawStyle": "line", "fillOpacity": 0, "lineWidth": 1, "showPoints": "never",
            });
        }
        View::State => {
            let steps = json!([{ "color": "red", "value": null }, { "color": "green", "value": 1 }]);
            defaults["color"] = json!({ "mode": "thresholds" });
            defaults["thresholds"] = json!({ "mode": "absolute", "steps": steps });
        }
        View::Number | View::Text => defaults["color"] = json!({ "mode": "fixed", "fixedColor": "text" }),
    }
    json!({ "defaults": defaults, "overrides": [] })
}

fn options(view: View) -> Value {
    let text = match view {
        View::Lines => {
            let legend = json!({ "calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": true });
            return json!({ "legend": legend, "tooltip": { "mode": "multi", "sort": "desc" } });
        }
        View::State | View::Number => "value_and_name",
        View::Text => "name",
    };
    json!({
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false },
        "showPercentChange": false,
        "textMode": text,
        "wideLayout": true,
    })
}
