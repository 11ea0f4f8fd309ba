import FoundationEssentials
import Glibc
import Threading

/// Runs one of the package's programs as a process and collects its output.
///
/// It does not use Foundation's `Process`, which leaks a weak reference that LeakSanitizer reports.
package final class Program: Sendable {
    /// How a program ended.
    package enum Ending: Hashable, Sendable {
        /// With an exit code.
        case exit(Int32)
        /// By a signal.
        case signal(Int32)
    }

    /// The process.
    package let identifier: Int32
    private let name: String
    private let output: OutputCollector
    private let complaints: OutputCollector
    private let ending = Monitor<Ending?>(nil)

    /// Who reads what a program writes.
    package enum Reading: Sendable {
        /// It is gathered in `text` or `errors`.
        case read
        /// Nobody reads it, so it fills up.
        case unread
        /// Its reader has gone.
        case closed
    }

    /// Whether this run of the tests starts the package's programs; `Tests/run --in-process` leaves such tests out.
    ///
    /// A test that starts one is `.enabled(if: Program.isAllowed)`.
    package static let isAllowed = getenv("ROOM_TESTS_IN_PROCESS") == nil

    /// Starts the program `name`; where ours are, `path(of:)` says.
    ///
    /// - Parameters:
    ///   - name: The program's name, or an absolute path, or a name for the shell's search path.
    ///   - arguments: The program's arguments.
    ///   - output: Who reads its standard output.
    ///   - errors: Who reads its standard error.
    ///   - inherited: A descriptor that the program gets as its descriptor 3.
    ///   - areLeaksSought: Whether LeakSanitizer, if it is built in, checks the program at its end. If ArgumentParser
    ///     itself ends the program while parsing, it always leaks some of its arrays.
    /// - Throws: An error if the program cannot be started.
    package init(
        _ name: String,
        _ arguments: [String],
        output: Reading = .read,
        errors: Reading = .read,
        inherited: Int32? = nil,
        areLeaksSought: Bool = true
    ) throws {
        guard Self.isAllowed || name == Self.path(of: name) else {
            throw TestFailure("this test must be .enabled(if: Program.isAllowed), because it starts \(name)")
        }
        self.name = name
        self.output = try OutputCollector()
        complaints = try OutputCollector()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, self.output.writer, 1)
        posix_spawn_file_actions_adddup2(&actions, complaints.writer, 2)
        if let inherited { posix_spawn_file_actions_adddup2(&actions, inherited, 3) }
        // The program must not inherit the test's signal handling, nor the mask of the thread that starts it.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var all = sigset_t()
        sigfillset(&all)
        posix_spawnattr_setsigdefault(&attributes, &all)
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        let path = Self.path(of: name)
        var strings: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        var environment = Self.environment(areLeaksSought: areLeaksSought).map { strdup($0) } + [nil]
        defer { for string in environment { free(string) } }
        var started: pid_t = 0
        let status = posix_spawnp(&started, path, &actions, &attributes, &strings, &environment)
        guard status == 0 else { throw TestFailure("\(path) cannot be started: errno \(status)") }
        identifier = started
        try self.output.begin(output)
        try complaints.begin(errors)
        let (identifier, ending) = (identifier, ending)
        _ = try WorkerThread(name: "waiter") {
            var status: Int32 = 0
            while waitpid(identifier, &status, 0) < 0 && errno == EINTR {}
            let signal = status & 0x7F
            ending.change { $0 = signal == 0 ? .exit((status >> 8) & 0xFF) : .signal(signal) }
        }
    }

    deinit {
        if ending.withLock({ $0 }) == nil { kill(identifier, SIGKILL) }
    }

    /// Whether it still runs.
    package var isRunning: Bool { ending.withLock { $0 } == nil }

    /// What it has written to standard output.
    package var text: String { output.text }

    /// What it has written to standard error.
    package var errors: String { complaints.text }

    /// The whole lines of its standard output.
    package var lines: [String] { text.split(separator: "\n").map(String.init) }

    /// The JSON objects of its standard output, one per line.
    ///
    /// - Throws: An error if a line is not a JSON object.
    package func events() throws -> [JSONObject] {
        try lines.map { try JSONObject(reading: $0) }
    }

    /// Where each of its threads waits, and the signals that it has not taken.
    private var threads: String {
        let directory = "/proc/\(identifier)/task"
        return fileNames(in: directory).map { thread in
            let read = { (name: String) in
                String(decoding: (try? bytes(of: "\(directory)/\(thread)/\(name)")) ?? [], as: UTF8.self)
            }
            let status = read("status").split(separator: "\n")
            let signals = status.filter { $0.contains("Pnd:") || $0.hasPrefix("SigBlk:") }
            return "\(read("comm").dropLast()) at \(read("wchan")) (\(signals.joined(separator: " ")))"
        }.joined(separator: ", ")
    }

    /// Sends it a signal.
    package func send(_ signal: Int32) {
        kill(identifier, signal)
    }

    /// Waits until it has ended and all its output is read.
    package func end() async throws -> Ending {
        let ending = try await eventual("\(name) ends; it said: \(text.suffix(2000)) \(errors); \(threads)") {
            self.ending.withLock { $0 }
        }
        try await eventually("its output ends") { complaints.isOver && output.isOver }
        return ending
    }

    /// Waits until its standard output holds `part`.
    package func says(_ part: String) async throws {
        try await eventually("\"\(part)\" comes; instead: \(text) \(errors)") {
            text.contains(part) || (!isRunning && output.isOver)
        }
        guard text.contains(part) else { throw TestFailure("it ended without \"\(part)\": \(text) \(errors)") }
    }

    /// Waits until its standard error holds `part`.
    package func complains(_ part: String) async throws {
        try await eventually("\"\(part)\" comes; instead: \(text) \(errors)") { errors.contains(part) }
    }

    /// The path of the program `name`; our own programs are in the folder that `ROOM_TEST_PROGRAMS` names, or else
    /// beside the tests.
    package static func path(of name: String) -> String {
        guard name.hasPrefix("room-") else { return name }
        if let folder = getenv("ROOM_TEST_PROGRAMS") { return "\(String(cString: folder))/\(name)" }
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let own = String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return own[..<(own.lastIndex(of: "/") ?? own.startIndex)] + "/" + name
    }

    /// The test's environment without the variables that the programs read.
    private static func environment(areLeaksSought: Bool) -> [String] {
        var strings = areLeaksSought ? [] : ["ASAN_OPTIONS=detect_leaks=0"]
        var next = environ
        while let string = next.pointee {
            let text = String(cString: string)
            let isReplaced = !areLeaksSought && text.hasPrefix("ASAN_OPTIONS=")
            if !text.hasPrefix("ROOM_") && !isReplaced { strings.append(text) }
            next += 1
        }
        return strings
    }
}

/// Collects what a program writes to one of its outputs.
private final class OutputCollector: Sendable {
    let writer: Int32
    private let reader: Int32
    private let state = Monitor((bytes: [UInt8](), isOver: false))

    init() throws {
        var ends: [Int32] = [0, 0]
        // A socket pair can be created close-on-exec in one call, so that no other child inherits it.
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw TestFailure("no pipe: errno \(errno)") }
        reader = ends[0]
        writer = ends[1]
    }

    var text: String { state.withLock { String(decoding: $0.bytes, as: UTF8.self) } }

    var isOver: Bool { state.withLock { $0.isOver } }

    /// Leaves the writing end to the program that has got it, and the other end to its reader.
    func begin(_ reading: Program.Reading) throws {
        // A few lines, which nobody will read.
        var size: Int32 = 2048
        if reading == .unread {
            setsockopt(writer, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        close(writer)
        switch reading {
        case .read: return try read()
        case .unread: break
        case .closed: close(reader)
        }
        state.withLock { $0.isOver = true }
    }

    /// Reads to the end, on a thread of its own.
    private func read() throws {
        let (reader, state) = (reader, state)
        _ = try WorkerThread(name: "outlet") {
            var chunk = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = Glibc.read(reader, &chunk, chunk.count)
                guard count > 0 else { break }
                state.withLock { $0.bytes += chunk[..<count] }
            }
            close(reader)
            state.withLock { $0.isOver = true }
        }
    }
}

/// A value in JSON.
package enum JSONValue: Decodable, Hashable, Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// Reads any value.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }
}

/// An object in JSON.
package struct JSONObject: Hashable, Sendable {
    /// Its fields.
    package var fields: [String: JSONValue]

    /// An object with the given fields.
    package init(fields: [String: JSONValue]) {
        self.fields = fields
    }

    /// Reads the text of an object.
    package init(reading text: some StringProtocol) throws {
        guard let fields = try? JSONDecoder().decode([String: JSONValue].self, from: Data(text.utf8)) else {
            throw TestFailure("not a JSON object: \(text)")
        }
        self.fields = fields
    }

    /// Its keys, sorted.
    package var keys: [String] { fields.keys.sorted() }

    /// A field that is a string.
    package func string(_ key: String) -> String? {
        if case .string(let value)? = fields[key] { value } else { nil }
    }

    /// A field that is a number.
    package func number(_ key: String) -> Double? {
        if case .number(let value)? = fields[key] { value } else { nil }
    }

    /// A field that is an object.
    package func object(_ key: String) -> JSONObject? {
        if case .object(let fields)? = fields[key] { JSONObject(fields: fields) } else { nil }
    }

    /// A field that is an array of objects.
    package func objects(_ key: String) -> [JSONObject] {
        guard case .array(let values)? = fields[key] else { return [] }
        return values.compactMap { value in
            if case .object(let fields) = value { JSONObject(fields: fields) } else { nil }
        }
    }
}
