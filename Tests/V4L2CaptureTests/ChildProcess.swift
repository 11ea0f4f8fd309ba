import Glibc
import Testing

/// A program that a test starts. (Foundation's `Process` leaks a weak reference, which LeakSanitizer reports.)
struct ChildProcess {
    let identifier: pid_t

    /// Starts a program, looked for in the search path.
    ///
    /// - Parameters:
    ///   - arguments: The program's name, and what it is given.
    ///   - input: What its standard input is to be; as the test's own if `nil`.
    ///   - output: What its standard output is to be; as the test's own if `nil`.
    /// - Throws: When there is no such program.
    init(_ arguments: [String], input: Int32? = nil, output: Int32? = nil) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input { posix_spawn_file_actions_adddup2(&actions, input, 0) }
        if let output { posix_spawn_file_actions_adddup2(&actions, output, 1) }
        var strings: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        var started: pid_t = 0
        let status = posix_spawnp(&started, arguments[0], &actions, nil, &strings, environ)
        try #require(status == 0, "\(arguments[0]) cannot be started")
        identifier = started
    }

    /// Waits for the program's end; whether it was successful.
    func wait() -> Bool {
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0 && errno == EINTR {}
        return status == 0
    }
}

/// Two ends of a stream, to read from and to write to, which children don't inherit.
///
/// A pair of sockets rather than a pipe, because sockets are made so at once: a child that another test starts in
/// between would keep a pipe's end open, and its reader waiting.
func makeStream() throws -> (reader: Int32, writer: Int32) {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    return (ends[0], ends[1])
}
