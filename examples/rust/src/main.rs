//! Run a model: `cargo run -- model.so`. examples/rust/README.md has the model. A second argument is
//! a copy that is trusted: the model then runs only if its bytes are the same.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: dso MODEL [COPY]")?;
    let model = match std::env::args().nth(2) {
        None => dso::Module::load(&path)?,
        Some(copy) => {
            let trusted = std::fs::read(copy)?;
            dso::Module::load_verified(&path, |path, bytes| {
                if bytes == trusted {
                    return Ok(());
                }
                Err(format!("{}: differs from the trusted copy", path.display()))
            })?
        }
    };

    let sum = model.function("add")?.call(&[40.into(), 2.into()])?;
    println!("add: {}", sum.as_int().ok_or("expected an integer")?);

    let mut x = [1.0f32, 2.0, 3.0, 4.0];
    let mut view = dso::Tensor::new(&mut x, &[2, 2])?;
    model.function("scale")?.call(&[(&mut view).into(), 4.into(), 0.5.into()])?;
    println!("scale: {x:?}");

    let weight = model.weight("layer.weight")?;
    let elements = weight.elements::<f32>().ok_or("expected float32")?;
    println!("layer.weight: {:?} {:?}", weight.shape(), elements);

    match model.function("missing") {
        Ok(_) => Err("found a function that the model lacks".into()),
        Err(error) => Ok(println!("{}", error.kind)),
    }
}
