import Foundation
import Testing

/// Pages of the project, and the sources of these tests.
private struct Page {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    let lines: [Substring]

    init(_ path: String) throws {
        lines = try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// The paths of the files below a folder.
    static func files(in folder: String) -> [String] {
        let names = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
        return names?.compactMap { $0 as? String }.map { "\(folder)/\($0)" } ?? []
    }

    /// The lines as code: those that are neither empty nor an import, without the space around and between words.
    static func code(_ lines: some Sequence<Substring>) -> [String] {
        lines.map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
            .filter { !$0.isEmpty && !$0.hasPrefix("import ") && !$0.hasPrefix("// swift-format-ignore") }
    }

    /// The code of each block that is fenced as Swift.
    var swiftBlocks: [[String]] {
        var blocks: [[String]] = []
        var block: [Substring]?
        for line in lines {
            if line.hasPrefix("```") {
                if let finished = block { blocks.append(Self.code(finished)) }
                block = block == nil && line == "```swift" ? [] : nil
            } else {
                block?.append(line)
            }
        }
        return blocks
    }

    /// The cells of all rows whose first cell is a number such as A1.2.
    var parityRows: [[String]] {
        lines.map { line in
            line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
        }.filter { $0.first?.wholeMatch(of: /A\d\.(\d+|\+)/) != nil }
    }
}

private func quoted(_ cell: String) -> [String] {
    cell.matches(of: /`([^`]+)`/).map { String($0.1) }
}

/// What the pages say to programmers is true: their code compiles, and the tests that they name exist.
@Suite("Documents")
struct DocumentTests {
    @Test(
        "The Swift code of a page stands in a file that is compiled, line by line",
        arguments: [
            ("README.md", "PageExamples"), ("docs/migration.md", "MigrationExamples"),
            ("Sources/RoomKit/RoomKit.docc/RoomKit.md", "PageExamples"),
            ("Sources/RoomKit/RoomKit.docc/Formats.md", "PageExamples"),
            ("Sources/RoomKit/RoomKit.docc/Threads.md", "PageExamples"),
        ]
    )
    func compiledBlocks(page: String, file: String) throws {
        let compiled = Page.code(try Page("Tests/ApplicationTests/\(file).swift").lines).joined(separator: "\n")
        for block in try Page(page).swiftBlocks {
            #expect(compiled.contains(block.joined(separator: "\n")), "\(page): \(block.joined(separator: "\n"))")
        }
    }

    @Test("The table of parity has every row once, and no empty cell")
    func parityRows() throws {
        let rows = try Page("docs/parity.md").parityRows
        let counts = [15, 8, 16, 6, 10]
        let numbers = counts.enumerated().flatMap { part, count in
            (1...count).map { "A\(part + 1).\($0)" } + (part < 2 ? ["A\(part + 1).+"] : [])
        }
        #expect(rows.map { $0[0] } == numbers)
        for row in rows { #expect(row.count == 5 && row.allSatisfy { !$0.isEmpty }, "\(row)") }
    }

    @Test("The Swift examples of parity are compiled")
    func parityExamples() throws {
        let compiled = Set(Page.code(try Page("Tests/ApplicationTests/ParityExamples.swift").lines))
        for row in try Page("docs/parity.md").parityRows {
            let example = try #require(quoted(row[3]).first, "\(row)")
            guard !example.hasPrefix("room-") else { continue }
            #expect(compiled.contains(example), "\(row[0]): \(example)")
        }
    }

    @Test("Each test, lab check and script that parity names exists")
    func parityTests() throws {
        let scripts = Page.files(in: "Tests/CameraLab").filter { $0.contains("/checks-") }
        let checks = try scripts.flatMap { try Page($0).lines }
        var sources: [Substring: [Page]] = [:]
        for row in try Page("docs/parity.md").parityRows {
            let names = quoted(row[4])
            #expect(!names.isEmpty, "\(row)")
            for name in names {
                if let match = name.wholeMatch(of: /(\w+)\.(\w+)\/(\w+)/) {
                    let (_, folder, suite, function) = match.output
                    let pages = try sources[folder] ?? Page.files(in: "Tests/\(folder)").map { try Page($0) }
                    sources[folder] = pages
                    let isThere = pages.contains { page in
                        page.lines.contains { $0.contains("struct \(suite) {") }
                            && page.lines.contains { $0.contains("func \(function)(") }
                    }
                    #expect(isThere, "\(row[0]): \(name)")
                } else if name.contains("/") {
                    #expect(!(try Page(name).lines.isEmpty), "\(row[0]): \(name)")
                } else {
                    #expect(checks.contains("check_\(name)() {"), "\(row[0]): \(name)")
                }
            }
        }
    }
}
