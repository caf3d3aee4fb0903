//! Clients of API servers with Kubernetes' conventions: apiloom's own and kube-apiserver.

pub mod cache;
pub mod controller;
