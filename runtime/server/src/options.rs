//! Command line flags, named as kube-apiserver names its own. The only place that reads the environment.
