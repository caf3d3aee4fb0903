//! Two servers over one etcd.
