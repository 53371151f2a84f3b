//! The names of the ways to sign in.

/// A way to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInMethod {
    AzureCli,
    ServicePrincipal,
    WorkloadIdentity,
    ManagedIdentity,
    DeviceCode,
}

impl SignInMethod {
    pub(super) const ALL: [(&'static str, Self); 5] = [
        ("az", Self::AzureCli),
        ("service-principal", Self::ServicePrincipal),
        ("workload-identity", Self::WorkloadIdentity),
        ("managed-identity", Self::ManagedIdentity),
        ("device-code", Self::DeviceCode),
    ];

    /// The names of the methods.
    pub(super) fn names() -> [&'static str; 5] {
        Self::ALL.map(|(name, _)| name)
    }
}
