//! A function with very many parameters wants a type. A tuple is as many parameters as it has parts: it hides them.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use super::modules::{Crate, is_of_tests, libraries};

/// Most parameters of a function, apart from the receiver.
const MOST: usize = 5;

/// The number of parameters that a type is.
fn parts(of: &syn::Type) -> usize {
    match of {
        syn::Type::Tuple(tuple) if !tuple.elems.is_empty() => tuple.elems.iter().map(parts).sum(),
        _ => 1,
    }
}

fn count(signature: &syn::Signature) -> usize {
    let typed = signature.inputs.iter().filter_map(|input| match input {
        syn::FnArg::Typed(input) => Some(parts(&input.ty)),
        syn::FnArg::Receiver(_) => None,
    });
    typed.sum()
}

/// The functions that have more parameters, with how many. Those of a trait that is implemented are told of the trait.
#[derive(Default)]
struct Functions(Vec<(String, usize)>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature) {
        let count = count(signature);
        if count > MOST {
            self.0.push((signature.ident.to_string(), count));
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_of_tests(&item.attrs) {
            self.add(&item.sig);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        if block.trait_.is_none() && !is_of_tests(&block.attrs) {
            visit::visit_item_impl(self, block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_of_tests(&item.attrs) {
            self.add(&item.sig);
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.add(&item.sig);
        visit::visit_trait_item_fn(self, item);
    }
}

#[test]
fn functions_have_few_parameters() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for library in libraries() {
        let krate = Crate::read(&library.source.join("lib.rs"));
        for module in &krate.modules {
            let mut functions = Functions::default();
            for item in &module.code {
                functions.visit_item(item);
            }
            let lines = functions
                .0
                .iter()
                .map(|(name, count)| format!("{name} has {count}"));
            found.entry(module.path()).or_default().extend(lines);
        }
    }
    found.retain(|_, functions| !functions.is_empty());
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_tuple_is_as_many_parameters_as_it_has_parts() {
    let source = "
        fn plain(a: u8, (b, c): (u8, (u8, u8)), d: u8) {}
        fn tuple(a: u8, (b, c): (u8, (u8, u8)), d: (u8, u8), e: ()) {}
        impl A { fn method(&self, a: u8, b: u8, c: u8, d: u8, e: u8) {} fn more(&self, a: [(u8, u8); 2], b: u8, c: u8, d: u8, e: (u8, u8)) {} }
        impl B for A { fn given(a: (u8, u8, u8, u8, u8, u8)) {} }
        trait B { fn given(a: (u8, u8, u8, u8, u8, u8)); }
        #[cfg(test)] fn tested(a: (u8, u8, u8, u8, u8, u8)) {}";
    let file = syn::parse_file(source).expect("Rust");
    let mut functions = Functions::default();
    functions.visit_file(&file);
    let found: Vec<(&str, usize)> = functions
        .0
        .iter()
        .map(|(name, count)| (&**name, *count))
        .collect();
    assert_eq!(found, [("tuple", 7), ("more", 6), ("given", 6)]);
}
