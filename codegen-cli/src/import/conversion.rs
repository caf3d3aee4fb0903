//! How a version converts to the stored one: types that both share, and the keys of `convert` for the others.
//!
//! What no key can derive is dropped on the way, and reported: the user writes it.

use std::cell::RefCell;

use super::module::{HUB, Relations, literal, rust_type};
use super::naming::{NamedType, NamedTypes};
use super::shapes::{Body, Field, Type};

/// The relations of a version to the hub, whose module has this path; and what is lost in a conversion, a line each.
pub(super) fn relate(own: &NamedTypes, hub: &NamedTypes, module: &str) -> (Relations, Vec<String>) {
    let path = HUB;
    let root = &hub.types[0].name;
    let mut relations = Relations {
        of_kind: vec![format!("spoke_of = {path}::{root}")],
        module: module.to_owned(),
        ..Relations::default()
    };
    let mut pair = Pair {
        own,
        hub,
        path,
        shared: Vec::new(),
        open: RefCell::default(),
    };
    // Types that are the same, and all that they name, are those of the hub.
    relations.shared = own.types[1..]
        .iter()
        .filter(|ty| {
            pair.twin(ty)
                .is_some_and(|twin| code(own, ty) == code(hub, twin))
        })
        .map(|ty| ty.name.clone())
        .collect();
    pair.shared.clone_from(&relations.shared);
    let mut lost = Vec::new();
    for (at, ty) in own.types.iter().enumerate() {
        let Some(ConversionKeys {
            hub_only,
            fields,
            lines,
        }) = pair.derive(ty)
        else {
            continue;
        };
        lost.extend(lines);
        relations.of_fields.extend(
            fields
                .into_iter()
                .map(|(field, key)| (ty.name.clone(), field, key)),
        );
        if at == 0 && hub_only.is_empty() {
            // `spoke_of` says it for the kind.
            continue;
        }
        let peer = if at == 0 { root } else { &ty.name };
        let mut arguments = vec![format!("peer = {path}::{peer}")];
        if !hub_only.is_empty() {
            arguments.push(format!("hub_only({})", hub_only.join(", ")));
        }
        relations.of_types.push((
            ty.name.clone(),
            format!("convert({})", arguments.join(", ")),
        ));
    }
    (relations, lost)
}

/// Two versions of a kind.
struct Pair<'a> {
    own: &'a NamedTypes,
    hub: &'a NamedTypes,
    path: &'a str,
    shared: Vec<String>,
    /// Types whose conversion is being derived.
    open: RefCell<Vec<String>>,
}

/// The keys of the conversion of a struct.
#[derive(Default)]
struct ConversionKeys {
    /// `field = value`.
    hub_only: Vec<String>,
    /// Keys of fields.
    fields: Vec<(String, String)>,
    /// What is lost.
    lines: Vec<String>,
}

/// How a field becomes that of the hub.
enum Way {
    Itself,
    /// By the functions of `convert(with = ..)`.
    Functions(String, &'static str),
    None,
}

impl<'a> Pair<'a> {
    fn twin(&self, ty: &NamedType) -> Option<&'a NamedType> {
        // The roots belong together, also if their names differ.
        if ty.name == self.own.types[0].name {
            return self.hub.types.first();
        }
        self.hub.types[1..].iter().find(|twin| twin.name == ty.name)
    }

    /// The keys of a struct that is not the hub's; `None` for a type without a conversion, such as one that contains itself.
    fn derive(&self, ty: &NamedType) -> Option<ConversionKeys> {
        if self.open.borrow().contains(&ty.name) {
            return None;
        }
        self.open.borrow_mut().push(ty.name.clone());
        let derived = self.derive_once(ty);
        self.open.borrow_mut().pop();
        derived
    }

    fn derive_once(&self, ty: &NamedType) -> Option<ConversionKeys> {
        if self.shared.contains(&ty.name) {
            return None;
        }
        let (Body::Struct(fields), Body::Struct(peers)) =
            (&ty.shape.body, &self.twin(ty)?.shape.body)
        else {
            return None;
        };
        let mut derived = ConversionKeys::default();
        for field in fields {
            let peer = peers.iter().find(|peer| peer.name == field.name);
            let at = format!("{}.{}", ty.name, field.json);
            match peer.map_or(Way::None, |peer| self.way(field, peer)) {
                Way::Itself => {}
                Way::Functions(functions, lost) => {
                    derived
                        .fields
                        .push((field.name.clone(), format!("convert(with = {functions})")));
                    derived.lines.push(format!("conversion of {at}: {lost}"));
                }
                Way::None => {
                    let default = zero(field, self.own, "")?;
                    derived.fields.push((
                        field.name.clone(),
                        format!("convert(drop, default = {default})"),
                    ));
                    derived.lines.push(format!(
                        "conversion of {at}: it is dropped; write convert(rename = ..) or convert(with = (to, from))"
                    ));
                    if let Some(peer) = peer {
                        derived.hub_only.push(self.hub_only(peer)?);
                    }
                }
            }
        }
        for peer in peers
            .iter()
            .filter(|peer| fields.iter().all(|field| field.name != peer.name))
        {
            derived.hub_only.push(self.hub_only(peer)?);
            derived.lines.push(format!(
                "conversion of {}.{}: only the stored version has it",
                ty.name, peer.json
            ));
        }
        Some(derived)
    }

    fn hub_only(&self, peer: &Field) -> Option<String> {
        let value = zero(peer, self.hub, &format!("{}::", self.path))?;
        Some(format!("{} = {value}", peer.name))
    }

    fn way(&self, field: &Field, peer: &Field) -> Way {
        let (ty, theirs) = (
            rust_type(&field.ty, self.own),
            rust_type(&peer.ty, self.hub),
        );
        if ty != theirs {
            return Way::None;
        }
        let is_shared = match field.ty.named().map(|id| &self.own.types[id]) {
            None => true,
            Some(named) if self.shared.contains(&named.name) => true,
            // Its conversion is derived.
            Some(named) if self.derive(named).is_some() => false,
            Some(_) => return Way::None,
        };
        if field.is_option == peer.is_option {
            return Way::Itself;
        }
        let there = format!("{}::", self.path);
        let has_type = |ty: &Type| matches!(ty, Type::Named(_));
        let (empty_there, empty_here) = (
            zero_of(&peer.ty, self.hub, &there),
            zero_of(&field.ty, self.own, ""),
        );
        let (empty, lost) = if field.is_option {
            (empty_there, "absent becomes an empty value there")
        } else {
            (empty_here, "an absent one becomes an empty value here")
        };
        let Some(empty) = empty else { return Way::None };
        let functions = match (is_shared, field.is_option) {
            (true, is_option) => {
                let given = format!("|value: Option<{ty}>| value.{}", unwrap(&empty));
                if is_option {
                    format!("({given}, Some)")
                } else {
                    format!("(Some, {given})")
                }
            }
            (false, _) if !has_type(&field.ty) => return Way::None,
            (false, true) => format!(
                "(|value: Option<{ty}>| value.map_or_else(|| Ok({empty}), {there}{ty}::convert_from), \
                 |value: {there}{ty}| {ty}::convert_from(value).map(Some))"
            ),
            (false, false) => format!(
                "(|value: {ty}| {there}{ty}::convert_from(value).map(Some), \
                 |value: Option<{there}{ty}>| value.map_or_else(|| Ok({empty}), {ty}::convert_from))"
            ),
        };
        Way::Functions(functions, lost)
    }
}

/// The call that gives an absent value this one.
fn unwrap(empty: &str) -> String {
    if empty.ends_with([')', '}']) {
        format!("unwrap_or_else(|| {empty})")
    } else {
        format!("unwrap_or({empty})")
    }
}

/// The value of a field that is not converted.
fn zero(field: &Field, named: &NamedTypes, path: &str) -> Option<String> {
    if field.is_option {
        return Some("None".to_owned());
    }
    match &field.default {
        // The variants of a default have no path.
        Some(default) if path.is_empty() || field.ty.named().is_none() => {
            let code = literal(default, named);
            Some(if field.ty == Type::Plain("String") {
                format!("{code}.to_owned()")
            } else {
                code
            })
        }
        _ => zero_of(&field.ty, named, path),
    }
}

/// An empty value of a type, whose path is given.
fn zero_of(ty: &Type, named: &NamedTypes, path: &str) -> Option<String> {
    let plain = match ty {
        Type::List(_) => "Vec::new()",
        Type::Map(_) => "BTreeMap::new()",
        Type::Plain(name) => match *name {
            "String" => "String::new()",
            "bool" => "false",
            "i32" | "i64" => "0",
            "f32" | "f64" => "0.0",
            "Vec<u8>" => "Vec::new()",
            "Value" => "serde_json::Value::Null",
            "IntOrString" => "IntOrString::from(0)",
            "Quantity" => "Quantity::default()",
            _ => return None,
        },
        Type::Boxed(_) | Type::Again(_) => return None,
        Type::Named(id) => {
            let of = &named.types[*id];
            return match &of.shape.body {
                Body::Enum(variants) => Some(format!("{path}{}::{}", of.name, variants.first()?.0)),
                Body::Struct(fields) => {
                    let fields = fields.iter().map(|field| {
                        Some(format!("{}: {}", field.name, zero(field, named, path)?))
                    });
                    let fields = fields.collect::<Option<Vec<_>>>()?;
                    Some(format!("{path}{} {{ {} }}", of.name, fields.join(", ")))
                }
            };
        }
    };
    Some(plain.to_owned())
}

/// The code of a type and of all that it names, without documentation: types with the same are one.
pub(super) fn code(named: &NamedTypes, ty: &NamedType) -> String {
    fn write(named: &NamedTypes, ty: &NamedType, seen: &mut Vec<String>, out: &mut String) {
        out.push_str(&format!("{} {:?} ", ty.name, ty.shape.keys));
        if seen.contains(&ty.name) {
            return;
        }
        seen.push(ty.name.clone());
        match &ty.shape.body {
            Body::Enum(variants) => out.push_str(&format!("{variants:?}")),
            Body::Struct(fields) => {
                for field in fields {
                    let default = field
                        .default
                        .as_ref()
                        .map(|default| literal(default, named));
                    let ty = rust_type(&field.ty, named);
                    out.push_str(&format!(
                        "{} {ty} {} {:?} {default:?};",
                        field.name, field.is_option, field.keys
                    ));
                    if let Some(id) = field.ty.named() {
                        write(named, &named.types[id], seen, out);
                    }
                }
            }
        }
    }
    let mut out = String::new();
    write(named, ty, &mut Vec::new(), &mut out);
    out
}
