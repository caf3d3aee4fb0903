//! There is no default scope: kubebuilder and kube-rs have contrary ones.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1")]
pub struct Thing {
    pub metadata: ObjectMeta,
}

fn main() {}
