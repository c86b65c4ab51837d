//! Call trees as text below the rows of a report, as perf report --stdio draws them.

use std::borrow::Cow;

use report::{CallTree, Contents, SymbolIndex};

use terminal::columns::shortened;
use terminal::format::real;

/// Spaces before a tree.
const INDENT: &str = "        ";

/// What follows a branch that others follow, below it.
const BAR: &str = "|          ";

/// What follows the last branch, below it.
const SPACE: &str = "           ";

/// Branches with less than this share of the events of the source are left out, as by perf report.
const MIN_SHARE: f64 = 0.005;

/// Minimum number of characters of a name, however deep it is.
const MIN_NAME: usize = 16;

/// A tree that is being drawn.
struct Drawing<'a> {
    tree: &'a CallTree,
    children: Vec<Vec<usize>>,
    contents: &'a Contents,
    symbol_index: &'a SymbolIndex,
    /// Events of the source.
    events: u64,
    width: usize,
    lines: Vec<String>,
}

/// Draws a tree; no lines if it has no branches. `events` are those of the source, of which shares are shown.
pub fn lines(
    tree: &CallTree,
    contents: &Contents,
    symbol_index: &SymbolIndex,
    events: u64,
    width: usize,
) -> Vec<String> {
    let children = tree.children();
    let mut drawing = Drawing { tree, children, contents, symbol_index, events, width, lines: Vec::new() };
    let top = drawing.shown(drawing.children.len().saturating_sub(1));
    drawing.branches(&top, INDENT, tree.all().events);
    drawing.lines
}

impl Drawing<'_> {
    /// Returns the children of a node that are large enough.
    fn shown(&self, node: usize) -> Vec<usize> {
        let of = self.children.get(node).map_or(&[][..], Vec::as_slice);
        of.iter().copied().filter(|child| self.share(*child) >= MIN_SHARE).collect()
    }

    fn total(&self, node: usize) -> u64 {
        self.tree.node(node).map_or(0, |node| node.total.events)
    }

    fn share(&self, node: usize) -> f64 {
        real(self.total(node)) / real(self.events.max(1))
    }

    /// Draws the branches below a node with so many events. A single one that has all of them continues the column;
    /// this is a loop because a column can have thousands of functions. Where columns divide, each has [its
    /// share](MIN_SHARE), so that the recursion is at most 200 deep.
    fn branches(&mut self, nodes: &[usize], indent: &str, events: u64) {
        let mut nodes = Cow::Borrowed(nodes);
        while let [only] = *nodes
            && self.total(only) == events
        {
            self.line(indent, "", only);
            nodes = self.shown(only).into();
        }
        for (index, node) in nodes.iter().enumerate() {
            let is_last = index + 1 == nodes.len();
            if index == 0 {
                self.lines.push(format!("{indent}|"));
            }
            let share = format!("{}--{:.2}%--", if is_last { ' ' } else { '|' }, self.share(*node) * 100.0);
            self.line(indent, &share, *node);
            let below = format!("{indent}{}", if is_last { SPACE } else { BAR });
            let next = self.shown(*node);
            self.branches(&next, &below, self.total(*node));
        }
    }

    fn line(&mut self, indent: &str, branch: &str, node: usize) {
        let Some(node) = self.tree.node(node) else { return };
        let name = self.symbol_index.function_name(node.function, self.contents);
        let mark = match node.function {
            function if function.is_inlined() => " (inlined)",
            function if function.kernel => " [k]",
            _ => "",
        };
        let taken = indent.len() + branch.len() + mark.len();
        let name = shortened(&name, self.width.saturating_sub(taken).max(MIN_NAME));
        self.lines.push(format!("{indent}{branch}{name}{mark}"));
    }
}
