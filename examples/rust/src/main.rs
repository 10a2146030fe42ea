//! Run a model: `cargo run -- model.so`. examples/rust/README.md has the model.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: dso MODEL")?;
    let model = dso::Module::load(&path)?;

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
