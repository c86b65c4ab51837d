//! The syntax of a symbol path, as in `_NT_SYMBOL_PATH` ("Symbol path for Windows debuggers" and "Advanced SymSrv Use",
//! Microsoft Learn).

use std::env;
use std::path::PathBuf;

/// An entry of a symbol path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathEntry {
    /// `cache*DIR`: keeps the files of the entries behind it.
    Cache(PathBuf),
    /// `srv*DIR*DIR*URL`: stores, each of which keeps what those behind it have, and servers.
    Chain {
        /// The stores.
        stores: Vec<PathBuf>,
        /// The addresses of the servers.
        servers: Vec<String>,
    },
    /// A folder.
    Folder(PathBuf),
}

/// Parses a symbol path. A store that is named by nothing, as in `srv**URL`, is the [default](default_store) one.
pub(crate) fn parse(symbol_path: &str) -> Vec<PathEntry> {
    symbol_path.split(';').filter_map(entry).collect()
}

fn entry(text: &str) -> Option<PathEntry> {
    let (kind, rest) = text.split_once('*').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
    match kind.to_ascii_lowercase().as_str() {
        "cache" => store(rest?.split('*').next()?).map(PathEntry::Cache),
        "srv" => Some(chain(rest)),
        // The name of a DLL, which halprof does not load.
        "symsrv" => rest.map(|rest| chain(rest.split_once('*').map(|(_, stores)| stores))),
        // Two semicolons in a row do not name the current directory.
        "" => None,
        _ => Some(PathEntry::Folder(kind.into())),
    }
}

fn chain(parts: Option<&str>) -> PathEntry {
    let (mut stores, mut servers) = (Vec::new(), Vec::new());
    for part in parts.into_iter().flat_map(|parts| parts.split('*')) {
        if ["http://", "https://"].iter().any(|scheme| part.starts_with(scheme)) {
            servers.push(part.trim_end_matches('/').to_owned());
        } else {
            stores.extend(store(part));
        }
    }
    PathEntry::Chain { stores, servers }
}

fn store(text: &str) -> Option<PathBuf> {
    if text.is_empty() { default_store() } else { Some(text.into()) }
}

/// Returns the store for files of entries without one: the folder `sym` of the user. `None` if there is no such folder.
pub(crate) fn default_store() -> Option<PathBuf> {
    Some(env::home_dir()?.join("sym"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(stores: &[&str], servers: &[&str]) -> PathEntry {
        PathEntry::Chain {
            stores: stores.iter().map(PathBuf::from).collect(),
            servers: servers.iter().map(|server| (*server).to_owned()).collect(),
        }
    }

    #[test]
    fn entries_are_caches_chains_of_stores_and_servers_and_folders() {
        let wanted = [
            PathEntry::Folder("C:\\symbols".into()),
            PathEntry::Cache("C:\\cache".into()),
            chain(&["C:\\near", "\\\\far\\store"], &["https://one.test/symbols", "http://two.test"]),
            chain(&["C:\\of a dll"], &[]),
            chain(&[], &[]),
        ];
        let text = "C:\\symbols;CACHE*C:\\cache;Srv*C:\\near*\\\\far\\store*https://one.test/symbols/*http://two.test;\
                    symsrv*my.dll*C:\\of a dll;srv;cache;symsrv;;";
        assert_eq!(parse(text), wanted);
    }

    #[test]
    fn a_store_without_a_name_is_the_folder_of_the_user() {
        let home = default_store().unwrap();
        assert!(home.ends_with("sym") && home.is_absolute(), "{}", home.display());
        let wanted = PathEntry::Chain { stores: vec![home], servers: vec!["https://one.test".to_owned()] };
        assert_eq!(parse("srv**https://one.test"), [wanted]);
        assert_eq!(parse("cache*"), [PathEntry::Cache(default_store().unwrap())]);
    }
}
