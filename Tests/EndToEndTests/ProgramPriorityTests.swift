import Foundation
import TestSupport
import Testing

@Suite("The priority of a program's threads", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramPriorityTests {
    // libdispatch gives its threads a nice value of its own, and those that they started had it too.
    @Test("Threads for media run at the nice value that the program was started with")
    func nice() async throws {
        let server = try await ServerProgram()
        let client = Program.path(of: "room-client")
        let words = ["connect", "--url", server.url, "--room", "stage", "--source", "pattern", "--size", "320x180"]
        let publisher = try Program("nice", ["-n", "7", client] + words)
        try await publisher.says("Publishing")
        let subscriber = try await server.subscriber()
        try await eventually("frames are encoded") { try nice(of: "encoder", in: publisher) != nil }
        try await eventually("frames are decoded") { try nice(of: "decoder", in: subscriber) != nil }
        // The thread that starts a program here has a value of libdispatch's, whatever that of this process is.
        for (program, names) in [(publisher, ["encoder", "pattern", "room"]), (subscriber, ["decoder"])] {
            let own = try niceOfMainThread(of: program)
            for name in names { #expect(try nice(of: name, in: program) == own, "\(name)") }
        }
        #expect(try niceOfMainThread(of: publisher) > niceOfMainThread(of: subscriber))
        let endings = try await end([publisher, subscriber, server.program], with: SIGTERM)
        #expect(endings.allSatisfy { $0 == .exit(0) })
    }

    /// The nice value of the thread with that name; `nil` if there is none.
    private func nice(of name: String, in program: Program) throws -> Int? {
        let tasks = "/proc/\(program.identifier)/task"
        for task in try FileManager.default.contentsOfDirectory(atPath: tasks) {
            let text = try String(contentsOfFile: "\(tasks)/\(task)/stat", encoding: .utf8)
            if text.contains("(\(name))") { return nice(in: text) }
        }
        return nil
    }

    private func niceOfMainThread(of program: Program) throws -> Int {
        let stat = "/proc/\(program.identifier)/task/\(program.identifier)/stat"
        return try #require(nice(in: String(contentsOfFile: stat, encoding: .utf8)))
    }

    /// The nice value in a thread's `stat`.
    private func nice(in stat: String) -> Int? {
        // The name may contain blanks; state is the third field and nice the nineteenth.
        let fields = stat[(stat.lastIndex(of: ")") ?? stat.startIndex)...].split(separator: " ")
        return Int(fields[17])
    }
}
