import Foundation
import TestSupport
import Testing

@Suite("The priority of a program's threads", .enabled(if: Program.isAllowed), .timeLimit(.minutes(1)))
struct ProgramPriorityTests {
    // libdispatch gives its threads a nice value of its own, and those that they started had it too.
    @Test("Threads for media run at the nice value that the program was started with")
    func nice() async throws {
        let server = try await ServerProgram()
        let own = Int(getpriority(Int32(PRIO_PROCESS.rawValue), id_t(getpid())))
        let client = Program.path(of: "room-client")
        let words = ["connect", "--url", server.url, "--room", "stage", "--source", "pattern", "--size", "320x180"]
        let publisher = try Program("nice", ["-n", "7", client] + words)
        try await publisher.says("Publishing")
        let subscriber = try await server.subscriber()
        try await eventually("frames are encoded") { try nice(of: "encoder", in: publisher) != nil }
        try await eventually("frames are decoded") { try nice(of: "decoder", in: subscriber) != nil }
        for name in ["encoder", "pattern", "room"] {
            #expect(try nice(of: name, in: publisher) == min(19, own + 7), "\(name)")
        }
        #expect(try nice(of: "decoder", in: subscriber) == own)
        let endings = try await end([publisher, subscriber, server.program], with: SIGTERM)
        #expect(endings.allSatisfy { $0 == .exit(0) })
    }

    /// The nice value of the thread with that name; `nil` if there is none.
    private func nice(of name: String, in program: Program) throws -> Int? {
        let tasks = "/proc/\(program.identifier)/task"
        for task in try FileManager.default.contentsOfDirectory(atPath: tasks) {
            let text = try String(contentsOfFile: "\(tasks)/\(task)/stat", encoding: .utf8)
            guard text.contains("(\(name))") else { continue }
            // The name may contain blanks; state is the third field and nice the nineteenth.
            let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
            return Int(fields[17])
        }
        return nil
    }
}
