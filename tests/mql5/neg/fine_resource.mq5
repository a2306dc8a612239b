// fine: a text of 26 units
#resource "fine_resource.txt" as string Text
void OnStart()
  {
   Print(StringSubstr(Text,0,7),"of ",StringLen(Text)," units");
  }
