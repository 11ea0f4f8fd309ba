import Foundation

/// `docs/protocol.md`, cut into what a test can check.
struct ProtocolDocument {
    /// A fenced block: what stands after its backticks, and its lines.
    struct Block {
        var info: String
        var text: String
    }

    /// A table: the cells of its rows, the heading's left out.
    struct Table {
        var heading: [String]
        var rows: [[String]]
    }

    /// A part of the page, from a heading of any depth to the next one.
    struct Section {
        var title: String
        var blocks: [Block] = []
        var tables: [Table] = []
    }

    let sections: [Section]
    /// The numbers of the sections, such as 4.2, that mark something as reserved.
    let reservedSections: Set<String>

    init() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/protocol.md"), encoding: .utf8)
        var sections: [Section] = []
        var section = Section(title: "")
        var block: Block?
        var isInTable = false
        var number = ""
        var reservedSections: Set<String> = []
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            let isRow = block == nil && line.hasPrefix("|")
            defer { isInTable = isRow }
            if line.contains("**Reserved"), !number.isEmpty { reservedSections.insert(number) }
            if line.hasPrefix("```") {
                if let finished = block { section.blocks.append(finished) }
                block = block == nil ? Block(info: String(line.dropFirst(3)), text: "") : nil
            } else if block != nil {
                block?.text += line + "\n"
            } else if isRow {
                let cells = Self.cells(of: line)
                if !isInTable {
                    section.tables.append(Table(heading: cells, rows: []))
                } else if !cells.allSatisfy({ $0.allSatisfy { "-:".contains($0) } }) {
                    section.tables[section.tables.count - 1].rows.append(cells)
                }
            } else if line.hasPrefix("#") {
                sections.append(section)
                section = Section(title: line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces))
                let first = section.title.prefix { $0 != " " }
                if first.first?.isNumber == true { number = first.trimmingCharacters(in: ["."]) }
            }
        }
        self.sections = sections + [section]
        self.reservedSections = reservedSections
    }

    /// All fenced blocks with `info` after their backticks.
    func blocks(_ info: String) -> [String] {
        sections.flatMap(\.blocks).filter { $0.info == info }.map(\.text)
    }

    /// The section whose title is `title`, or begins with it where it has a number.
    func section(_ title: String) -> Section? {
        sections.first { $0.title == title }
    }

    /// The bytes of the dump with the given name.
    func dump(_ name: String) -> [UInt8] {
        blocks("hex \(name)").flatMap { $0.split(separator: "\n") }
            .flatMap { $0.split(separator: " ").dropFirst() }
            .compactMap { UInt8($0, radix: 16) }
    }

    private static func cells(of line: Substring) -> [String] {
        line.trimmingCharacters(in: .whitespaces).dropFirst().dropLast().split(
            separator: "|",
            omittingEmptySubsequences: false
        )
        .map { $0.trimmingCharacters(in: .whitespaces) }
    }
}

extension String {
    /// The text without the backticks around it.
    var withoutBackticks: String { trimmingCharacters(in: CharacterSet(charactersIn: "`")) }
}
