//! A union has members, members have a union.

#[apiloom::api(union(tag = name))]
pub struct NoMembers {
    pub name: Option<String>,
}

#[apiloom::api]
pub struct NoUnion {
    #[api(member = "Name")]
    pub name: Option<String>,
}

#[apiloom::api(union(tag = name))]
pub struct TagIsMember {
    #[api(member = "Name")]
    pub name: Option<String>,
}

#[apiloom::api(union(tag = tag))]
pub struct NeverSelected {
    pub tag: Option<String>,
    #[api(member = "Name")]
    pub name: Option<String>,
    #[api(member = [])]
    pub other: Option<String>,
}

fn main() {}
