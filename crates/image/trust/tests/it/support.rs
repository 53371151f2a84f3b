//! A lock and keys.

use std::path::{Path, PathBuf};
use std::process::Command;

use cudock_base::Digest;
use cudock_lock::LockFile;
use cudock_trust::{ImageSigner, PublicKey};

pub(crate) fn lock() -> LockFile {
    let hash = "0".repeat(64);
    let text = format!(
        "schema = 1\n[target]\narch = \"x86_64\"\npython = \"3.13\"\n[inputs]\nimage = \"sha256:{hash}\"\n\
         [debian]\ndistribution = \"debian\"\nsuite = \"trixie\"\n\
         [[deb]]\nname = \"libstdc++6\"\nversion = \"14.2.0-19\"\nfile = \"a.deb\"\npath = \"pool/a.deb\"\narchive = \"debian\"\n\
         size = 5\ndigest = \"sha256:{hash}\"\ngroup = \"system\"\nreason = \"x\"\n\
         [[wheel]]\nname = \"numpy\"\nversion = \"2.1.0+cu\"\nfile = \"n.whl\"\npath = \"n.whl\"\nsize = 7\n\
         digest = \"sha256:{hash}\"\ngroup = \"dependencies\"\nreason = \"x\"\n"
    );
    LockFile::parse(Path::new("cudock.lock"), &text).unwrap()
}

pub(crate) fn image() -> Digest {
    Digest::sha256_of(b"an image")
}

/// Keys that OpenSSL made.
pub(crate) struct Keys {
    pub(crate) openssl: PathBuf,
    directory: tempfile::TempDir,
}

impl Keys {
    pub(crate) fn new(curve: &str) -> Option<Self> {
        let openssl = cudock_testkit::require_program("openssl")?;
        let keys = Self { openssl, directory: tempfile::tempdir().unwrap() };
        let curve = format!("ec_paramgen_curve:{curve}");
        keys.run(&["genpkey", "-algorithm", "EC", "-pkeyopt", &curve, "-out", "cosign.key"]);
        keys.run(&["pkey", "-in", "cosign.key", "-pubout", "-out", "cosign.pub"]);
        Some(keys)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn run(&self, args: &[&str]) -> String {
        let output =
            Command::new(&self.openssl).args(args).current_dir(self.directory.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn signer(&self) -> ImageSigner {
        ImageSigner::read(&self.path("cosign.key")).unwrap()
    }

    pub(crate) fn public(&self) -> PublicKey {
        PublicKey::read(&self.path("cosign.pub")).unwrap()
    }
}
