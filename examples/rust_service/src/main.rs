//! A scorer of one file: loads the model that Python's `save` wrote and decides over HTTP.
//!
//! ```console
//! cargo run --release -- model.json 127.0.0.1:8080
//! curl '127.0.0.1:8080/decide?minus=0&tie=1&plus=11'
//! {"label": 1, "probabilities": [0.0356..., 0.2615..., 0.7028...]}
//! ```

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use std::{env, error, fs, thread};

use btdagg::{CompiledModel, Counts, Model};

/// Counts up to this are looked up; others are computed.
const TABLE: u64 = 32;

/// A request line and its headers are read up to so many bytes, and for so long.
const MAX_HEAD: u64 = 8192;
const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn error::Error>> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().ok_or("usage: btdagg-service MODEL [ADDRESS]")?;
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let model = Model::from_json(&fs::read_to_string(&path)?)
        .map_err(|error| format!("{path}: {error}"))?;
    let model = Arc::new(model.compile(TABLE));
    let listener = TcpListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    for stream in listener.incoming() {
        let model = Arc::clone(&model);
        // Neither a client that is gone nor one too many is the end of the service.
        let _ = thread::Builder::new().spawn(move || {
            let _ = stream.and_then(|stream| serve(&model, &stream));
        });
    }
    Ok(())
}

/// Answers the requests of a connection until the client closes it or is too slow.
fn serve(model: &CompiledModel, mut stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        let mut limited = reader.by_ref().take(MAX_HEAD);
        while !head.ends_with(b"\r\n\r\n") {
            if limited.read_until(b'\n', &mut head)? == 0 {
                return Ok(());
            }
        }
        let (status, body) = match answer(model, &String::from_utf8_lossy(&head)) {
            Ok(body) => ("200 OK", body),
            Err(message) => ("422 Unprocessable Content", format!("{{\"detail\": \"{message}\"}}")),
        };
        let length = body.len() + 1;
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}\n"
        )?;
    }
}

/// The JSON for a request such as `GET /decide?minus=0&tie=1&plus=11 HTTP/1.1`.
fn answer(model: &CompiledModel, head: &str) -> Result<String, String> {
    let query = head
        .strip_prefix("GET /decide?")
        .and_then(|rest| rest.split_whitespace().next())
        .ok_or("expected GET /decide?minus=...&tie=...&plus=...")?;
    let count = |name: &str| {
        let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let value = value.and_then(|value| value.parse::<u64>().ok());
        value.ok_or_else(|| format!("{name} is missing or none, expected an integer of at least 0"))
    };
    let counts = Counts::whole(count("minus")?, count("tie")?, count("plus")?);
    Ok(format!(
        "{{\"label\": {}, \"probabilities\": {:?}}}",
        model.decide(counts).value(),
        model.probabilities(counts)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_answered_or_named() {
        let model = Model::new(1.2, 2.0, 0.8).unwrap().compile(TABLE);
        let answer = |query: &str| answer(&model, &format!("GET /decide?{query} HTTP/1.1\r\n\r\n"));
        assert!(answer("minus=0&tie=1&plus=11").unwrap().starts_with("{\"label\": 1, "));
        assert!(answer("plus=0&tie=1&minus=1100").unwrap().starts_with("{\"label\": -1, "));
        assert_eq!(
            answer("minus=0&tie=1").unwrap_err(),
            "plus is missing or none, expected an integer of at least 0"
        );
        assert_eq!(
            answer("minus=-1&tie=1&plus=0").unwrap_err(),
            "minus is missing or none, expected an integer of at least 0"
        );
    }
}
