//! Links libdso.a, whose folder `packer config --libdir` prints.

use std::{env, process::Command};

fn main() {
    println!("cargo:rerun-if-env-changed=DSO_LIBDIR");
    let folder = env::var("DSO_LIBDIR").unwrap_or_else(|_| {
        let asked = Command::new("packer").args(["config", "--libdir"]).output();
        let asked = asked.expect("packer: not on PATH; set DSO_LIBDIR to the folder of libdso.a");
        String::from_utf8(asked.stdout).expect("packer config: expected UTF-8")
    });
    println!("cargo:rustc-link-search=native={}", folder.trim());
    println!("cargo:rustc-link-lib=static=dso");
    for library in ["dl", "m", "pthread"] {
        println!("cargo:rustc-link-lib=dylib={library}");
    }
}
