//! Names of types: as short as they can be while different types have different names.

use std::collections::BTreeMap;

use super::names;
use super::rules::Literal;
use super::shapes::{Body, Field, Shape, Shapes, Type};

/// The types of a module, with their names; equal ones are one.
#[derive(Debug)]
pub(crate) struct NamedTypes {
    /// In the order in which they are written: the root first, then as fields name them.
    pub(crate) types: Vec<NamedType>,
}

/// A type with its name.
#[derive(Clone, Debug)]
pub(crate) struct NamedType {
    pub(crate) name: String,
    pub(crate) shape: Shape,
}

impl NamedType {
    /// The places of the types that its fields have.
    pub(super) fn used(&self) -> impl Iterator<Item = usize> {
        used(&self.shape).into_iter()
    }
}

/// Names the types of a version of a kind; the root has the name of the kind, or the one that can be had.
pub(crate) fn name(shapes: Shapes) -> NamedTypes {
    let all = shapes.all;
    let root = all.len() - 1;
    let names = names_of(&all);
    // The first shape of each name stands for all.
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, name) in names.iter().enumerate() {
        first.entry(name).or_insert(at);
    }
    let stands_for: Vec<usize> = names.iter().map(|name| first[name.as_str()]).collect();
    let mut order = vec![root];
    let mut next = 0;
    while let Some(&at) = order.get(next) {
        next += 1;
        for id in used(&all[at]) {
            let id = stands_for[id];
            if !order.contains(&id) {
                order.push(id);
            }
        }
    }
    let types = order.into_iter().map(|at| NamedType {
        name: names[at].clone(),
        shape: with_ids(&all[at], &stands_for),
    });
    let mut types: Vec<NamedType> = types.collect();
    // From places among all shapes to places among these types.
    let places: BTreeMap<&str, usize> = types
        .iter()
        .enumerate()
        .map(|(place, ty)| (ty.name.as_str(), place))
        .collect();
    let places: Vec<usize> = names
        .iter()
        .map(|name| places.get(name.as_str()).copied().unwrap_or_default())
        .collect();
    for ty in &mut types {
        ty.shape = with_ids(&ty.shape, &places);
    }
    NamedTypes { types }
}

/// The shapes that the fields of a shape have.
fn used(shape: &Shape) -> Vec<usize> {
    match &shape.body {
        Body::Struct(fields) => fields.iter().filter_map(|field| field.ty.named()).collect(),
        Body::Enum(_) => Vec::new(),
    }
}

fn with_ids(shape: &Shape, ids: &[usize]) -> Shape {
    let mut shape = shape.clone();
    if let Body::Struct(fields) = &mut shape.body {
        fields.iter_mut().for_each(|field| rename(field, ids));
    }
    shape
}

fn rename(field: &mut Field, ids: &[usize]) {
    fn of_type(ty: &mut Type, ids: &[usize]) {
        match ty {
            Type::Plain(_) | Type::Again(_) => {}
            Type::Named(id) | Type::Boxed(id) => *id = ids[*id],
            Type::List(inner) | Type::Map(inner) => of_type(inner, ids),
        }
    }
    fn of_literal(literal: &mut Literal, ids: &[usize]) {
        match literal {
            Literal::Code(_) => {}
            Literal::Variant(id, _) => *id = ids[*id],
            Literal::List(items) => items.iter_mut().for_each(|item| of_literal(item, ids)),
        }
    }
    of_type(&mut field.ty, ids);
    if let Some(default) = &mut field.default {
        of_literal(default, ids);
    }
}

/// The names of all shapes: each takes so many words of its path from the end that no other type has the same ones.
fn names_of(all: &[Shape]) -> Vec<String> {
    let root = all.len() - 1;
    // Of fields of the root, such as `spec`, the kind is a part.
    let mut lengths: Vec<usize> = all
        .iter()
        .map(|shape| {
            if shape.path.len() <= 2 {
                shape.path.len()
            } else {
                1
            }
        })
        .collect();
    let name = |at: usize, length: usize| {
        let path: &[String] = &all[at].path;
        path[path.len().saturating_sub(length)..].concat()
    };
    loop {
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, length) in lengths.iter().enumerate() {
            groups.entry(name(at, *length)).or_default().push(at);
        }
        let mut changed = false;
        for (name, members) in &groups {
            let is_one = members
                .iter()
                .all(|at| all[*at].identity == all[members[0]].identity);
            let is_taken = names::is_taken(name) && members != &[root];
            if is_one && !is_taken {
                continue;
            }
            for at in members {
                if lengths[*at] < all[*at].path.len() {
                    lengths[*at] += 1;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    // Paths may be the same word for word, such as `a.bC` and `aB.c`.
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut out = vec![String::new(); all.len()];
    for at in std::iter::once(root).chain(0..root) {
        let stem = name(at, lengths[at]);
        let stem = if names::is_taken(&stem) {
            format!("{stem}Type")
        } else {
            stem
        };
        let (mut candidate, mut number) = (stem.clone(), 2);
        while known
            .get(&candidate)
            .is_some_and(|other| all[*other].identity != all[at].identity)
        {
            candidate = format!("{stem}{number}");
            number += 1;
        }
        known.entry(candidate.clone()).or_insert(at);
        out[at] = candidate;
    }
    out
}
