//! TLS for probes. The certificate is not checked: it is made out to a name outside, and the question is only whether
//! the container answers, as in Kubernetes.

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

use super::http::Timed;

/// A connection over TLS.
pub(super) fn over(stream: Timed) -> io::Result<StreamOwned<ClientConnection, Timed>> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone { provider }))
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

/// Takes every certificate, and still wants its owner on the other side.
#[derive(Debug)]
struct Anyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use std::net::TcpStream;
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::Duration;

    use cudock_group::HttpGet;

    use crate::group::http::ask;

    #[test]
    fn a_certificate_nobody_vouches_for_is_good_enough_for_a_probe() {
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=elsewhere.example"])
            .args(["-keyout", "key.pem", "-out", "cert.pem"])
            .current_dir(folder.path())
            .stderr(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            cudock_testkit::missing("openssl", "openssl is needed to make a certificate");
            return;
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Command::new("openssl")
            .args(["s_server", "-quiet", "-www", "-key", "key.pem", "-cert", "cert.pem"])
            .args(["-accept", &format!("127.0.0.1:{port}")])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(server.try_wait().unwrap().is_none(), "the server ended");
            thread::sleep(Duration::from_millis(20));
        }
        let get = |https| HttpGet { path: "/".to_owned(), port, https, headers: Vec::new() };
        let limit = Duration::from_secs(60);
        let (safely, plainly) = (ask(&get(true), None, limit), ask(&get(false), None, limit));
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(safely, Ok(()));
        assert!(plainly.is_err(), "what speaks TLS does not speak HTTP");
    }
}
