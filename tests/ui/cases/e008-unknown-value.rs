//! Words of closed lists get the near spelling or the whole list.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, verbs(only = [get, lst, fly]), name_format = dns_lable, generation = sometimes, printcolumn(name = "A", json_path = ".a", type = "strng"))]
pub struct Thing {
    pub metadata: ObjectMeta,
}

#[apiloom::api]
pub struct Part {
    #[api(format = dns_labl, update(no_sett))]
    pub name: Option<String>,
    #[api(list = sett)]
    pub list: Vec<String>,
    #[api(map = atomik)]
    pub map: BTreeMap<String, String>,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, deletion(dependents = orphaned, returns = nothing))]
pub struct Owner {
    pub metadata: ObjectMeta,
}

fn main() {}
