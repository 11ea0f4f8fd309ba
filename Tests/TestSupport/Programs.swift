import MediaCore

/// A `room-server` as a process, and clients of it.
package struct ServerProgram: Sendable {
    /// The process.
    package let program: Program
    /// Where it listens.
    package let port: Int

    /// Starts a server at a free port and waits until it listens.
    ///
    /// - Parameter arguments: More arguments of the program.
    /// - Throws: An error if it ends at once.
    package init(_ arguments: [String] = []) async throws {
        let program = try Program("room-server", ["--port", "0"] + arguments)
        self.program = program
        port = try await eventual("the server listens") {
            guard let address = program.errors.split(separator: "listening at ws://127.0.0.1:").dropFirst().first else {
                guard program.isRunning else { throw TestFailure("it ended: \(program.errors)") }
                return nil
            }
            // The rest of the line may not have arrived yet.
            return address.contains("\n") ? Int(address.prefix { $0.isNumber }) : nil
        }
    }

    /// Where it listens.
    package var url: String { "ws://127.0.0.1:\(port)" }

    /// Starts `room-client` with a command that joins the room `stage`.
    package func client(
        _ command: String,
        _ arguments: [String] = [],
        output: Program.Reading = .read
    ) throws -> Program {
        var arguments = arguments
        if !arguments.contains("--room") { arguments += ["--room", "stage"] }
        return try Program("room-client", [command, "--url", url] + arguments, output: output)
    }

    /// Starts a publisher of the test pattern and waits until it publishes.
    package func publisher(_ arguments: [String] = []) async throws -> Program {
        let size = arguments.contains("--size") ? [] : ["--size", "320x180"]
        let source = arguments.contains("--source") ? [] : ["--source", "pattern"] + size
        let program = try client("connect", source + arguments)
        try await program.says(arguments.contains("--json") ? "\"published\"" : "Publishing")
        return program
    }

    /// Starts a subscriber and waits until it receives a track.
    package func subscriber(_ arguments: [String] = []) async throws -> Program {
        let program = try client("subscribe", arguments)
        try await program.says(arguments.contains("--json") ? "trackSubscribed" : "Receiving")
        return program
    }
}

/// Ends programs with `signal`, one after the other, so that no client loses its server; returns how each ended.
package func end(_ programs: [Program], with signal: Int32) async throws -> [Program.Ending] {
    var endings: [Program.Ending] = []
    for program in programs {
        program.send(signal)
        let ending = try await program.end()
        if case .exit(let code) = ending, code != 0 { print("a program ended with \(code): \(program.errors)") }
        endings.append(ending)
    }
    return endings
}

/// Waits until the log of a dump in `directory` has `frames` lines; returns the dump's path without extension.
package func recorded(_ frames: Int, in directory: String) async throws -> String {
    try await eventual("\(frames) frames are recorded") {
        for name in fileNames(in: directory) where name.hasSuffix(".frames.jsonl") {
            let path = "\(directory)/\(name)"
            guard try bytes(of: path).count(where: { $0 == UInt8(ascii: "\n") }) >= frames else { continue }
            return String(path.dropLast(".frames.jsonl".count))
        }
        return nil
    }
}
