import Foundation
import TestSupport

/// The keys of JSON objects by what they belong to, such as "connect: summary"; a nested key is "a.b" or "a[].b".
struct JSONKeys {
    private(set) var keys: [String: Set<String>] = [:]

    /// What the objects are called, as the headings of `docs/json.md`.
    var names: [String] { Array(keys.keys) }

    subscript(name: String) -> Set<String>? { keys[name] }

    /// The keys that `docs/json.md` has: the first column of the table below each heading of the third depth or more.
    static func documented() throws -> JSONKeys {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/json.md"), encoding: .utf8)
        var result = JSONKeys()
        var names: [String] = []
        for line in page.split(separator: "\n") {
            if line.hasPrefix("#") {
                let heading = line.drop { $0 == "#" }.drop { $0 == " " }
                names = line.hasPrefix("###") ? expanded(String(heading)) : []
            } else if line.hasPrefix("| `") {
                let cell = line.split(separator: "|")[0]
                let keys = cell.split(separator: "`").filter { !$0.allSatisfy { " ,".contains($0) } }
                for name in names { result.keys[name, default: []].formUnion(keys.map(String.init)) }
            }
        }
        return result
    }

    /// "connect, subscribe: connected" as a name for each command.
    private static func expanded(_ heading: String) -> [String] {
        let parts = heading.split(separator: ": ")
        guard parts.count == 2 else { return [heading] }
        return parts[0].split(separator: ", ").map { "\($0): \(parts[1])" }
    }

    /// Adds the objects that a command has written; the keys that all objects have are left out.
    mutating func add(_ objects: [JSONObject], by command: String) {
        for object in objects {
            let event = object.string("event") ?? ""
            var fields = object.fields
            fields["event"] = nil
            fields["time"] = nil
            add([JSONObject(fields: fields)], named: event == "failure" ? "all: failure" : "\(command): \(event)")
        }
    }

    /// Adds objects under a name of their own.
    mutating func add(_ objects: [JSONObject], named name: String) {
        for object in objects { keys[name, default: []].formUnion(Self.paths(in: .object(object.fields), at: "")) }
        // An object that was null once, and not another time, is no key of its own.
        let all = keys[name] ?? []
        keys[name] = all.filter { key in !all.contains { $0.hasPrefix("\(key).") || $0.hasPrefix("\(key)[].") } }
    }

    private static func paths(in value: JSONValue, at path: String) -> Set<String> {
        switch value {
        case .object(let fields):
            return fields.reduce(into: []) {
                $0.formUnion(paths(in: $1.value, at: path + (path.isEmpty ? "" : ".") + $1.key))
            }
        case .array(let values):
            let inner = values.reduce(into: Set<String>()) { $0.formUnion(paths(in: $1, at: "\(path)[]")) }
            return inner.filter { $0 != "\(path)[]" }.isEmpty ? [path] : inner
        default: return [path]
        }
    }
}
