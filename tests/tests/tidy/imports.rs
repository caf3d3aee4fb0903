//! The imports between the modules of each crate, drawn as text: a module that is a folder stands for all its files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::cycles::reachable;
use super::modules::{Crate, libraries};
use super::uses::{self, Uses};

/// The module that a file is drawn as; `None` for the root of the crate, which only declares modules.
fn module(source: &Path, file: &Path) -> Option<String> {
    let path = file.strip_prefix(source).ok()?.with_extension("");
    let first = path.iter().next()?.to_str()?;
    Some(first.to_owned()).filter(|name| name != "lib")
}

/// The modules that each module of a crate imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn imports(source: &Path, files: &BTreeMap<PathBuf, Uses>) -> Imports {
    let mut imports = Imports::new();
    for (file, used) in files {
        let Some(from) = module(source, file) else {
            continue;
        };
        let used = used.iter().filter_map(|used| module(source, used));
        let others = used.filter(|to| *to != from);
        imports.entry(from.clone()).or_default().extend(others);
    }
    imports
}

/// The modules from which arrows lead back to themselves.
fn modules_in_cycles(imports: &Imports) -> Vec<&str> {
    let leads_back = |module: &&String| reachable(imports, *module).contains(*module);
    imports
        .keys()
        .filter(leads_back)
        .map(String::as_str)
        .collect()
}

/// A change of the drawing is reviewed as a change of the structure.
#[test]
fn imports_between_modules_are_as_drawn() {
    let mut text = String::new();
    for library in libraries() {
        let (name, source) = (&*library.name, &*library.source);
        let files = uses::of(&Crate::read(&source.join("lib.rs")));
        let imports = imports(source, &files);
        text.push_str(&format!("{name}\n"));
        for (from, to) in imports.iter().filter(|(_, to)| !to.is_empty()) {
            let to = Vec::from_iter(to.iter().map(String::as_str));
            text.push_str(&format!("  {from} -> {}\n", to.join(", ")));
        }
        // Flags become a configuration of the server, whose `main` reads them.
        let known: &[&str] = match name {
            "runtime/server" => &["options", "server"],
            _ => &[],
        };
        assert_eq!(modules_in_cycles(&imports), known, "arrows back in {name}");
    }
    insta::assert_snapshot!(text);
}
